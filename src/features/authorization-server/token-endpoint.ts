/** The token endpoint (RFC 6749 section 3.2), independent of HTTP. */

import { oauthRefused } from '../../access/tokens/rejection.ts'
import { activeSigningKey, OWN_TOKENS } from '../../access/tokens/signing-keys.ts'
import {
  type Client,
  followsFapi,
  GRANT_TYPES,
  type GrantType,
  principalOfClient,
} from './client.ts'
import type { ClientAuthenticator } from './client-authenticator.ts'
import { clientCredentialsGrant, refreshTokenGrant } from './grants.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { tokenExchangeGrant } from './token-exchange-grant.ts'
import type { GrantHandler, OAuthRequest, TokenResponse } from './token-request.ts'

export interface TokenEndpointOptions extends AuthorizationServerOptions {
  readonly authenticate: ClientAuthenticator
  /** Grants of other features. */
  readonly grants?: GrantHandlers | undefined
}

export type GrantHandlers = Readonly<Partial<Record<GrantType, GrantHandler>>>

/**
 * Creates the endpoint. It authenticates the client, checks its grant type, verifies the proof, and
 * then runs the grant. A failed request has used its proof and its client assertion. It has used
 * its refresh token only if the last step failed; a retry within the grace period then succeeds.
 */
export function createTokenEndpoint(options: TokenEndpointOptions) {
  const handlers: GrantHandlers = {
    ...options.grants,
    client_credentials: clientCredentialsGrant(options),
    refresh_token: refreshTokenGrant(options),
    'urn:ietf:params:oauth:grant-type:token-exchange': tokenExchangeGrant(options),
  }

  return async function token(request: OAuthRequest): Promise<TokenResponse> {
    const { form, identify, waitUntil } = request
    const { client, revokedBefore } = await options.authenticate(request)
    identify(principalOfClient(client, options.issuer))
    const grantType = parseGrantType(form.one('grant_type'))
    const handle = handlers[grantType]
    if (handle === undefined) throw oauthRefused('unsupported_grant_type', 'grant_type')
    if (!client.grants.includes(grantType)) throw oauthRefused('unauthorized_client', 'grant_type')
    await refuseUnsignable(client)
    const proof = await verifyProof(request, client)
    return handle({ client, revokedBefore, form, proof, identify, waitUntil })
  }

  /** Checked before anything is used. */
  async function refuseUnsignable({ tokenFormat, tokenAlgorithm: algorithm }: Client) {
    if (tokenFormat === 'jwt')
      await activeSigningKey(options.keys, options.now(), { ...OWN_TOKENS, algorithm })
  }

  /** The issued token is bound to the key of the proof (RFC 9449 section 5). */
  async function verifyProof({ method, url, dpop }: OAuthRequest, client: Client) {
    if (dpop !== undefined) return options.dpop.verify({ method, url, header: dpop })
    if (client.dpopBound || followsFapi(client, options.profile))
      throw oauthRefused('invalid_dpop_proof', 'dpop_missing')
    return undefined
  }
}

function parseGrantType(text: string | undefined): GrantType {
  if (text === undefined) throw oauthRefused('invalid_request', 'grant_type_missing')
  const grantType = GRANT_TYPES.find((name) => name === text)
  if (grantType === undefined) throw oauthRefused('unsupported_grant_type', 'grant_type')
  return grantType
}
