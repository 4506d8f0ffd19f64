/** Access grants and sessions: the types and ports that grants and token issuers share. */
import type { SigningAlgorithm } from '../validators/signing-jwk.ts'

/** What an access token says about its bearer (RFC 9068 section 2.2). */
export interface AccessGrant {
  /** `sub`. */
  readonly subject: string
  /** `sub_iss`: the issuer that vouches for the subject. Undefined: the gateway itself. */
  readonly subjectIssuer?: string | undefined
  /** `client_id`. */
  readonly client: string
  readonly tenant?: string | undefined
  /** `sid`: the session, for tokens that a refresh token can renew. */
  readonly session?: string | undefined
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
  /** `aud`, at least one. */
  readonly audiences: readonly string[]
  /** `cnf.jkt`: thumbprint of the key that the token is bound to (RFC 9449 section 6). */
  readonly confirmation?: string | undefined
}

export type TokenFormat = 'jwt' | 'opaque'

/**
 * 32 unpredictable bytes. A token's id, which is public, and an opaque token, which is secret, are
 * derived from them. A seed is never stored, logged or sent.
 */
export type TokenSeed = Uint8Array

export interface IssueOptions {
  /** Default `jwt`. */
  readonly format?: TokenFormat | undefined
  /**
   * The algorithm of the signature: the first active signing key with it signs. Default: the first
   * active key.
   */
  readonly algorithm?: SigningAlgorithm | undefined
  /** Life of the token, in seconds. Default: as configured. */
  readonly ttlSeconds?: number | undefined
  /** The end of the session, in seconds since the epoch. The token never lives longer. */
  readonly notAfterSeconds?: number | undefined
  /**
   * The seed from which, together with the grant, the token's id and an opaque token are derived.
   * The `seed` of a {@link Rotation} gives a retry with the same grant the same values. Default:
   * random.
   */
  readonly seed?: TokenSeed | undefined
  /** `iat`, whole seconds since the epoch. Default: now. */
  readonly issuedAtSeconds?: number | undefined
}

export interface IssuedToken {
  /** The credential. */
  readonly token: string
  readonly tokenId: string
  readonly tokenIdHash: string
  readonly issuedAtSeconds: number
  readonly expiresAtSeconds: number
}

/**
 * Port: issues access tokens. Throws:
 *
 * - `Unavailable` if an opaque token cannot be stored.
 * - `Denied` with `oauth_refused` / `invalid_grant` if the token would expire at once because of
 *   `notAfterSeconds`.
 * - `Misconfigured` if no active key signs with the algorithm.
 * - `RangeError` if the life is not 300 to 3600 s.
 */
export interface TokenIssuer {
  issue(grant: AccessGrant, options?: IssueOptions): Promise<IssuedToken>
}

/** A login that refresh tokens extend. */
export interface Session {
  /** `sid`: a UUID. */
  readonly id: string
  /** The most that any token of this session may be granted. */
  readonly grant: AccessGrant
  /**
   * The start of the session, in whole seconds since the epoch. A revocation cutoff at or after it
   * ends the session.
   */
  readonly startedAtSeconds: number
  /** The absolute end of the session, in seconds since the epoch. Nothing extends it. */
  readonly expiresAtSeconds: number
}

/** The session of a refresh token, and the state of that token. */
export interface FoundSession {
  readonly session: Session
  /**
   * True for the current token, and for the previous one in its grace period. A refresh with any
   * other token ends the session.
   */
  readonly live: boolean
}

/** The result of a refresh. A retry within the grace period gets the same values. */
export interface Rotation {
  readonly refreshToken: string
  /**
   * The seed of the new access token. Pass it to `TokenIssuer.issue` unchanged, with
   * `issuedAtSeconds`.
   */
  readonly seed: TokenSeed
  /** At or after the start of the session, whatever the clock says. */
  readonly issuedAtSeconds: number
}

/**
 * Port: refresh tokens (RFC 6749 section 6, RFC 9700 section 4.14.2). `inspect` and `rotate` throw
 * `Denied` with `oauth_refused` / `invalid_grant`. All methods throw `Unavailable` if the store is
 * not available.
 */
export interface RefreshTokens {
  /** Creates a refresh family and returns its first refresh token. */
  open(session: Session): Promise<string>
  /**
   * Returns the session of a token, and whether the token itself is still good. Changes nothing.
   * Returns undefined if the token is malformed or unknown, or if the session has ended.
   */
  find(refreshToken: string): Promise<FoundSession | undefined>
  /**
   * Returns the session of a live token that `client` presents, without using the token. Reuse of a
   * used token ends the family. A token of another client is refused and changes nothing.
   */
  inspect(refreshToken: string, client: string): Promise<Session>
  /**
   * Uses a token and returns its successor, in one atomic step. Refuses if a revocation cutoff
   * covers the session. Reuse ends the family and, by a cutoff of the session, its access tokens.
   */
  rotate(refreshToken: string, session: Session): Promise<Rotation>
  /** Ends a token's family and the session's access tokens. Does nothing for an unknown token. */
  end(refreshToken: string): Promise<void>
}
