/** Requests to the token endpoint and their responses: the types that all grants share. */
import type { Principal } from '../../access/principal.ts'
import type { AccessGrant, IssuedToken } from '../../access/tokens/access-grant.ts'
import type { DpopProof } from '../../access/tokens/dpop.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { Client } from './client.ts'
import type { AuthenticatedClient, ClientRequest } from './client-authenticator.ts'

/** A request to the authorization server, parsed from HTTP. */
export interface OAuthRequest extends ClientRequest {
  readonly method: string
  /** The values of all `DPoP` headers, joined by `, `. */
  readonly dpop: string | undefined
  /** Sets the principal of the request for the audit trail, each time more is known about it. */
  readonly identify: (actor: Principal) => void
  readonly waitUntil: WaitUntil
}

/** An endpoint that accepts POST with a form. */
export interface OAuthEndpoint {
  readonly path: string
  readonly handle: (request: OAuthRequest) => Promise<object | undefined>
  /** Default 200. */
  readonly status?: 201
}

/** A token request of an authenticated client. */
export interface TokenRequest
  extends AuthenticatedClient,
    Pick<OAuthRequest, 'form' | 'identify' | 'waitUntil'> {
  /** A verified proof. The grant still checks that it was not used before. */
  readonly proof: DpopProof | undefined
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

/** Handles a request with one `grant_type`. Throws `Denied` and `Unavailable`. */
export type GrantHandler = (request: TokenRequest) => Promise<TokenResponse>

/**
 * Throws `Denied` (`invalid_dpop_proof`) if what a request presents is bound to a key, and the
 * request has no proof. Throws the given refusal if the proof is by another key.
 */
export function refuseUnbound(
  { confirmation }: Pick<Principal, 'confirmation'>,
  proof: DpopProof | undefined,
  ...[error, check]: Parameters<typeof oauthRefused>
): void {
  if (confirmation === undefined || confirmation === proof?.thumbprint) return
  if (proof === undefined) throw oauthRefused('invalid_dpop_proof', 'dpop_missing')
  throw oauthRefused(error, check)
}

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
