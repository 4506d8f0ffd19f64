/** Pushed authorization requests (RFC 9126). */

import { oauthRefused } from '../../access/tokens/rejection.ts'
import { randomBytes } from '../../crypto/random.ts'
import { Denied } from '../../errors.ts'
import { keyPart } from '../../redis/key-part.ts'
import { codeKeys } from '../../redis/keys.ts'
import { principalOfClient } from '../authorization-server/client.ts'
import type { ClientAuthenticator } from '../authorization-server/client-authenticator.ts'
import { refuseReplay } from '../authorization-server/grant-store.ts'
import type { AuthorizationServerOptions } from '../authorization-server/options.ts'
import type { OAuthRequest } from '../authorization-server/token-request.ts'
import type { AuthorizationEndpoint } from './authorization-endpoint.ts'
import { formatParameters, parseAuthorizationRequest } from './authorization-request.ts'
import type { Offer } from './offer.ts'
import {
  newHandle,
  PUSHED_SECONDS,
  REQUEST_URI_PREFIX,
  type WaitingRequests,
} from './waiting-request.ts'

/** Requests of one address. Each is stored for a minute. */
const PUSHED = { name: 'pushed_requests', limit: 60, windowSeconds: 60 }

export interface PushedRequestOptions
  extends Pick<AuthorizationServerOptions, 'issuer' | 'store' | 'dpop'> {
  readonly authenticate: ClientAuthenticator
  readonly endpoint: Pick<AuthorizationEndpoint, 'search' | 'targetOf'>
  readonly offer: Offer
  readonly waiting: WaitingRequests
}

/**
 * Creates the endpoint. It checks a request as the authorization endpoint does, except what needs the
 * user. The redirect URI of a client with a document is checked only there, unless the document is
 * cached: anyone may push a request, and must not cause calls to other hosts.
 *
 * A DPoP proof binds the code to its key, as `dpop_jkt` does (RFC 9449 section 10.1).
 */
export function createPushedRequestEndpoint(options: PushedRequestOptions) {
  const { issuer, store, endpoint, offer, waiting } = options
  /** Returns the response of RFC 9126 section 2.2. */
  return async function push(request: OAuthRequest) {
    const { form, address, identify } = request
    const { client } = await options.authenticate(request)
    identify(principalOfClient(client, issuer))
    // Required beside every credential (RFC 6749 section 4.1.1). Another client's id was refused.
    if (form.one('client_id') === undefined)
      throw oauthRefused('invalid_request', 'authorize_client_id')
    const key = `${codeKeys(store.keys).oauthRequests}pushed:${await keyPart(address)}`
    const proof = await proofOf(request)
    const facts = await store.consult({ keys: [], proof, counters: [{ ...PUSHED, key }] })
    if (facts.exhausted !== undefined)
      throw new Denied({ code: 'rate_limited', ...facts.exhausted })
    refuseReplay(facts)
    if (form.one('request_uri') !== undefined)
      throw oauthRefused('invalid_request', 'pushed_request_uri')
    const found = await endpoint.search(client.id)
    if (!('missing' in found)) endpoint.targetOf(found, form)
    else if (found.missing !== 'unread')
      throw oauthRefused('invalid_client', `client_${found.missing}`)
    const { resources, dpopKey = proof?.thumbprint } = parseAuthorizationRequest(form)
    offer.audiencesOf(resources, client)
    if (proof !== undefined && dpopKey !== proof.thumbprint)
      throw oauthRefused('invalid_dpop_proof', 'pushed_dpop_jkt')
    const { text, hash } = await newHandle(randomBytes)
    const parameters = formatParameters(form, dpopKey)
    await waiting.put(hash, { kind: 'pushed', client: client.id, parameters }, PUSHED_SECONDS)
    return {
      request_uri: REQUEST_URI_PREFIX + text,
      /** Seconds. */
      expires_in: PUSHED_SECONDS,
    }
  }

  async function proofOf({ method, url, dpop }: OAuthRequest) {
    return dpop === undefined ? undefined : options.dpop.verify({ method, url, header: dpop })
  }
}
