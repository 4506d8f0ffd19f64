/** Pushed authorization requests (RFC 9126). */
import { randomBytes } from '../../crypto/random.ts'
import { Denied } from '../../errors.ts'
import { keyPart } from '../../redis/key-part.ts'
import { oauthRefused } from '../../tokens/rejection.ts'
import { principalOfClient } from '../client.ts'
import type { ClientAuthenticator } from '../client-authenticator.ts'
import type { AuthorizationServerOptions } from '../options.ts'
import type { OAuthRequest } from '../token-request.ts'
import type { AuthorizationEndpoint } from './authorization-endpoint.ts'
import { parametersOf, parseAuthorizationRequest } from './authorization-request.ts'
import {
  newHandle,
  PUSHED_SECONDS,
  REQUEST_URI_PREFIX,
  type WaitingRequests,
} from './waiting-request.ts'

/** Requests of one address. Each is stored for five minutes. */
const PUSHED = { name: 'pushed_requests', limit: 60, windowSeconds: 60 }

export interface PushedRequestOptions extends Pick<AuthorizationServerOptions, 'issuer' | 'store'> {
  readonly authenticate: ClientAuthenticator
  readonly endpoint: Pick<AuthorizationEndpoint, 'search' | 'targetOf'>
  readonly waiting: WaitingRequests
}

/** RFC 9126 section 2.2. */
export interface PushedResponse {
  readonly request_uri: string
  /** Seconds. */
  readonly expires_in: number
}

/**
 * Creates the endpoint. It checks a request as the authorization endpoint does, except what needs the
 * user. The redirect URI of a client with a document is checked only there, unless the document is
 * cached: anyone may push a request, and must not cause calls to other hosts.
 */
export function createPushedRequestEndpoint(options: PushedRequestOptions) {
  const { issuer, store, endpoint, waiting } = options
  return async function push(request: OAuthRequest): Promise<PushedResponse> {
    const { form, address, identify } = request
    const { client } = await options.authenticate(request)
    identify(principalOfClient(client, issuer))
    const key = `${store.keys.oauthRequests}pushed:${await keyPart(address)}`
    const { exhausted } = await store.consult({ keys: [], counters: [{ ...PUSHED, key }] })
    if (exhausted !== undefined) throw new Denied({ code: 'rate_limited', ...exhausted })
    if (form.one('request_uri') !== undefined)
      throw oauthRefused('invalid_request', 'pushed_request_uri')
    const found = await endpoint.search(client.id)
    if (!('missing' in found)) endpoint.targetOf(found, form)
    else if (found.missing !== 'unread')
      throw oauthRefused('invalid_client', `client_${found.missing}`)
    parseAuthorizationRequest(form)
    const { text, hash } = await newHandle(randomBytes)
    const parameters = parametersOf(form)
    await waiting.put(hash, { kind: 'pushed', client: client.id, parameters }, PUSHED_SECONDS)
    return { request_uri: REQUEST_URI_PREFIX + text, expires_in: PUSHED_SECONDS }
  }
}
