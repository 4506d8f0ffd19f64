/** Dynamic client registration (RFC 7591), independent of HTTP. */

import { oauthRefused } from '../../../access/tokens/rejection.ts'
import { Denied } from '../../../errors.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { codeKeys } from '../../../redis/keys.ts'
import type { AuthorizationServerOptions } from '../../authorization-server/options.ts'
import { readClientMetadata } from './client-metadata.ts'
import { publicClient } from './public-client.ts'
import { newRegisteredId, type RegisteredClients } from './registered-clients.ts'

export interface RegistrationOptions extends Pick<AuthorizationServerOptions, 'store' | 'now'> {
  readonly registered: RegisteredClients
  /** The gateway's public URL. */
  readonly publicUrl: string
  /** Private-use schemes of redirect URIs that the policy permits. */
  readonly schemes: readonly string[]
  /** Registrations of one address in an hour. */
  readonly perAddress: number
  /** How long a client is kept that no user has allowed. */
  readonly unusedSeconds: number
}

const WINDOW_SECONDS = 3_600
/** Registrations of all addresses in an hour, so that many addresses cannot fill the store. */
const MAX_REGISTRATIONS = 1_000
const DEFAULT_NAME = 'An app without a name'

/**
 * Creates the endpoint. Whatever authentication a client requests, it becomes a public client, as RFC
 * 7591 section 2 permits: a secret that anyone can get proves nothing.
 */
export function createRegistrationEndpoint(options: RegistrationOptions) {
  const { store, registered, publicUrl, schemes, perAddress, unusedSeconds, now } = options
  /** Returns the response of RFC 7591 section 3.2.1. */
  return async function register(metadata: unknown, address: string) {
    const prefix = `${codeKeys(store.keys).oauthRequests}registration:`
    const window = { windowSeconds: WINDOW_SECONDS }
    const counters = [
      {
        ...window,
        name: 'registrations_of_address',
        key: `${prefix}address:${await keyPart(address)}`,
        limit: perAddress,
      },
      { ...window, name: 'registrations', key: `${prefix}all`, limit: MAX_REGISTRATIONS },
    ]
    const { exhausted } = await store.consult({ keys: [], counters })
    if (exhausted !== undefined) throw new Denied({ code: 'rate_limited', ...exhausted })
    const read = readClientMetadata(metadata, schemes)
    if (read === 'redirect_uris')
      throw oauthRefused('invalid_redirect_uri', 'register_redirect_uris')
    if (typeof read === 'string') throw oauthRefused('invalid_client_metadata', `register_${read}`)
    const createdAtSeconds = Math.floor(now() / 1000)
    const data = {
      ...read,
      id: newRegisteredId(),
      name: read.name === '' ? DEFAULT_NAME : read.name,
      createdAtSeconds,
    }
    await registered.put(publicClient(data, publicUrl), unusedSeconds)
    return {
      client_id: data.id,
      client_id_issued_at: createdAtSeconds,
      client_name: data.name,
      redirect_uris: data.redirectUris,
      grant_types: data.grants,
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      dpop_bound_access_tokens: data.dpopBound ?? false,
    }
  }
}

export type RegistrationEndpoint = ReturnType<typeof createRegistrationEndpoint>
