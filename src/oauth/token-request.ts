/** A request to the token endpoint, and what it gets: the vocabulary that the grants share. */
import type {
  AccessGrant,
  IssuedToken,
  RefreshTokens,
  TokenIssuer,
} from '../tokens/access-grant.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import type { Principal, WaitUntil } from '../tokens/principal.ts'
import type { Client } from './client.ts'
import type { AuthenticatedClient } from './client-authenticator.ts'
import type { OAuthForm } from './form.ts'
import type { GrantStore } from './grant-store.ts'
import type { ScopeOfRoles } from './scope.ts'

/** A request of a client that has authenticated. */
export interface TokenRequest extends AuthenticatedClient {
  readonly form: OAuthForm
  /** A good proof that has not been used in another request, or will be refused for it. */
  readonly proof: DpopProof | undefined
  /** Tells whom it is about, as soon as that is known, for the audit trail. */
  readonly identify: (actor: Principal) => void
  readonly waitUntil: WaitUntil
}

/** RFC 6749 section 5.1, RFC 8693 section 2.2.1. */
export interface TokenResponse {
  readonly access_token: string
  readonly issued_token_type?: string
  readonly token_type: 'Bearer' | 'DPoP'
  /** Seconds. */
  readonly expires_in: number
  readonly scope?: string
  readonly refresh_token?: string
}

/** What grants are made with. */
export interface GrantOptions {
  /** The gateway's public URL. */
  readonly issuer: string
  readonly tokens: TokenIssuer
  readonly refreshTokens: RefreshTokens
  readonly store: GrantStore
  /** The policy's. */
  readonly scopeOfRoles: ScopeOfRoles
  /** Life of a session, seconds. */
  readonly sessionSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Decides over a request with one `grant_type`. Throws `Denied` and `Unavailable`. */
export type GrantHandler = (request: TokenRequest) => Promise<TokenResponse>

/** What the client has asked for. */
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

/** What of a client decides over how its tokens are made. */
export function issueOptionsOf({ tokenFormat, tokenAlgorithm, accessTokenSeconds }: Client) {
  return { format: tokenFormat, algorithm: tokenAlgorithm, ttlSeconds: accessTokenSeconds }
}
