/** Revocation by the client that a token was issued to (RFC 7009): how a login ends. */
import { REVOCATION_MARGIN_SECONDS } from '../admission/revocation.ts'
import type { RefreshTokens } from '../tokens/access-grant.ts'
import { oauthRefused } from '../tokens/oauth-refusal.ts'
import type { ReferenceStore } from '../tokens/reference.ts'
import { principalOfClient, principalOfGrant } from './actor.ts'
import type { ClientAuthenticator } from './client-authenticator.ts'
import type { PresentedTokenReader } from './presented-token.ts'
import type { OAuthRequest } from './token-endpoint.ts'

/** Port: ends one access token. Throws `Unavailable` if that is not certain. */
export interface TokenRevoker {
  revokeToken(token: {
    readonly tokenIdHash: string
    /** Until when it must be remembered, seconds since the epoch. */
    readonly untilSeconds: number
  }): Promise<void>
}

export interface RevocationOptions {
  readonly authenticate: ClientAuthenticator
  readonly readPresented: PresentedTokenReader
  readonly refreshTokens: RefreshTokens
  readonly references: ReferenceStore
  readonly revoker: TokenRevoker
  /** The gateway's public URL. */
  readonly issuer: string
}

export type RevocationEndpoint = (request: OAuthRequest) => Promise<void>

/**
 * Makes the endpoint. A refresh token ends its session, with every access token of it, in every
 * gateway from the next request on, even one that was used before: whoever logs out with an old one
 * means the session. An access token ends alone. A token that is not good is none to
 * revoke, which is no error (RFC 7009 section 2.2); that of another client is, and stays as it is.
 * `token_type_hint` is not needed: a token says by its form what it is. Tokens of other issuers are
 * for those issuers to end.
 */
export function createRevocationEndpoint(options: RevocationOptions): RevocationEndpoint {
  const { refreshTokens, references, revoker, issuer } = options
  return async function revoke(request) {
    const { client } = await options.authenticate(request)
    request.identify(principalOfClient(client, issuer))
    const token = request.form.one('token')
    if (token === undefined) throw oauthRefused('invalid_request', 'token_missing')
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
      untilSeconds: principal.expiresAtSeconds + REVOCATION_MARGIN_SECONDS,
    })
    // Last: isolates that know the reference look at its revocation, not at its record.
    if (referenceHash !== undefined) await references.remove(referenceHash)
  }
}
