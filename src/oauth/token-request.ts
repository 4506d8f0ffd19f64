/** Requests to the token endpoint and their responses: the types that all grants share. */

import type { Principal, WaitUntil } from '../identity/principal.ts'
import type { AccessGrant, IssuedToken, TokenIssuer } from '../tokens/access-grant.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import type { RefreshTokens } from '../tokens/refresh-tokens.ts'
import type { Client } from './client.ts'
import type { AuthenticatedClient } from './client-authenticator.ts'
import type { OAuthForm } from './form.ts'
import type { GrantStore } from './grant-store.ts'
import type { ScopeOfRoles } from './scope.ts'

/** A request of an authenticated client. */
export interface TokenRequest extends AuthenticatedClient {
  readonly form: OAuthForm
  /** A verified proof. The grant still checks that it was not used before. */
  readonly proof: DpopProof | undefined
  /** Sets the principal of the request for the audit trail, as soon as it is known. */
  readonly identify: (actor: Principal) => void
  readonly waitUntil: WaitUntil
}

/** The response of RFC 6749 section 5.1 and RFC 8693 section 2.2.1. */
export interface TokenResponse {
  readonly access_token: string
  readonly issued_token_type?: string
  readonly token_type: 'Bearer' | 'DPoP'
  /** Seconds. */
  readonly expires_in: number
  readonly scope?: string
  readonly refresh_token?: string
}

/** The dependencies of all grants. */
export interface GrantOptions {
  /** The gateway's public URL. */
  readonly issuer: string
  readonly tokens: TokenIssuer
  readonly refreshTokens: RefreshTokens
  readonly store: GrantStore
  /** Issuers that share their tenants with the gateway. */
  readonly tenantIssuers: ReadonlySet<string>
  /** Returns the scopes that roles grant under the policy. */
  readonly scopeOfRoles: ScopeOfRoles
  /**
   * Life of a session that starts with a login at another issuer, in seconds. Undefined: the
   * session ends with the login's token.
   */
  readonly sessionSeconds: number | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Handles a request with one `grant_type`. Throws `Denied` and `Unavailable`. */
export type GrantHandler = (request: TokenRequest) => Promise<TokenResponse>

/** Returns the response for an issued token. */
export function tokenResponse(
  { token, expiresAtSeconds }: IssuedToken,
  { scopes, confirmation }: AccessGrant,
  nowMs: number,
): TokenResponse {
  return {
    access_token: token,
    token_type: confirmation === undefined ? 'Bearer' : 'DPoP',
    expires_in: Math.max(0, expiresAtSeconds - Math.floor(nowMs / 1000)),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  }
}

/** Returns the issue options that a client's registration sets. */
export function issueOptionsOf({ tokenFormat, tokenAlgorithm, accessTokenSeconds }: Client) {
  return { format: tokenFormat, algorithm: tokenAlgorithm, ttlSeconds: accessTokenSeconds }
}
