/** Revocation by the client that a token was issued to (RFC 7009): the logout. */
import { REVOCATION_MARGIN_SECONDS } from '../../access/revocation/revocation.ts'
import { principalOfGrant } from '../../access/tokens/access-grant.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { principalOfClient } from './client.ts'
import type { ClientAuthenticator } from './client-authenticator.ts'
import type { AuthorizationServerOptions } from './options.ts'
import type { PresentedTokenReader } from './presented-token.ts'
import type { OAuthRequest } from './token-request.ts'

export interface RevocationOptions
  extends Pick<AuthorizationServerOptions, 'issuer' | 'refreshTokens' | 'references' | 'revoker'> {
  readonly authenticate: ClientAuthenticator
  readonly readPresented: PresentedTokenReader
}

/**
 * Creates the endpoint.
 *
 * - A refresh token ends its session and all access tokens of it, in every gateway from the next
 *   request on. A used refresh token does so too: the client wants to end the session.
 * - An access token is revoked alone.
 * - A token that is not valid needs no revocation and causes no error (RFC 7009 section 2.2).
 * - A token of another client is refused with `Denied` (`invalid_grant`) and does not change.
 * - A token of another issuer is ignored: only that issuer can revoke it.
 * - An API key, or a token without an id, is refused with `Denied` (`unsupported_token_type`).
 *
 * `token_type_hint` is not needed, because the form of a token identifies its kind.
 */
export function createRevocationEndpoint(options: RevocationOptions) {
  const { refreshTokens, references, revoker, issuer } = options
  return async function revoke(request: OAuthRequest): Promise<void> {
    const { client } = await options.authenticate(request)
    request.identify(principalOfClient(client, issuer))
    const token = request.form.one('token')
    if (token === undefined) throw oauthRefused('invalid_request', 'missing_token')
    const presented = await options.readPresented(token, request.waitUntil)
    if (presented === undefined) return

    if (presented.kind === 'refresh') {
      const { grant } = presented.session
      if (grant.client !== client.id) throw oauthRefused('invalid_grant', 'token_of_another_client')
      request.identify(principalOfGrant(grant, issuer))
      return refreshTokens.end(token)
    }
    const { principal, kind, referenceHash } = presented
    if (kind === 'api_key') throw oauthRefused('unsupported_token_type', 'api_key')
    if (principal.tokenIssuer !== issuer) return
    if (principal.client !== client.id)
      throw oauthRefused('invalid_grant', 'token_of_another_client')
    request.identify(principal)
    if (principal.tokenIdHash === undefined)
      throw oauthRefused('unsupported_token_type', 'token_without_id')
    await revoker.revokeToken({
      tokenIdHash: principal.tokenIdHash,
      subject: principal.subject,
      untilSeconds: principal.expiresAtSeconds + REVOCATION_MARGIN_SECONDS,
    })
    // Removed last: isolates that have cached the reference check its revocation, not its record.
    if (referenceHash !== undefined) await references.remove(referenceHash)
  }
}
