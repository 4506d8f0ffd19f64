/** What is granted: the vocabulary between whoever decides about tokens and whoever makes them. */
import type { SigningAlgorithm } from '../validators/signing-jwk.ts'

/** What an access token says of its bearer (RFC 9068 section 2.2). */
export interface AccessGrant {
  /** `sub`. */
  readonly subject: string
  /** `sub_iss`: the issuer that vouched for the subject; undefined: the gateway itself. */
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
 * 32 unpredictable bytes that a token's id, which is no secret, and an opaque token, which is one,
 * are made from: a seed is never stored, logged or sent.
 */
export type TokenSeed = Uint8Array

export interface IssueOptions {
  /** Default `jwt`. */
  readonly format?: TokenFormat | undefined
  /** The first active signing key with this algorithm signs; default: the first active one. */
  readonly algorithm?: SigningAlgorithm | undefined
  /** Life of the token; default as configured. */
  readonly ttlSeconds?: number | undefined
  /** The token never lives past this, seconds since the epoch: the end of its session. */
  readonly notAfterSeconds?: number | undefined
  /**
   * What the token's id, and an opaque token itself, are made from, together with the grant: the
   * `seed` of a {@link Rotation}, so that a retry for the same gets the same ones. Default: random.
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
 * Port: makes access tokens. Throws `Unavailable` where an opaque one cannot be stored, `Denied`
 * with `oauth_refused` / `invalid_grant` where `notAfterSeconds` leaves it no life, `Misconfigured`
 * where no active key signs with the algorithm, and `RangeError` for a life that is not 300 to 3600
 * s.
 */
export interface TokenIssuer {
  issue(grant: AccessGrant, options?: IssueOptions): Promise<IssuedToken>
}

/** A login that refresh tokens keep alive. */
export interface Session {
  /** `sid`: a UUID. */
  readonly id: string
  /** The most that any token of this session may be granted. */
  readonly grant: AccessGrant
  /** When the session began; a cut-off at or after it ends it. Whole seconds since the epoch. */
  readonly startedAtSeconds: number
  /** Absolute end, which nothing moves. Seconds since the epoch. */
  readonly expiresAtSeconds: number
}

/** A session as a look at one of its refresh tokens finds it. */
export interface FoundSession {
  readonly session: Session
  /** False for a token that was used before: whoever presents it to refresh ends the session. */
  readonly live: boolean
}

/** What a refresh gave. A retry within the grace period gets the same of all this. */
export interface Rotation {
  readonly refreshToken: string
  /** For the access token that goes with it; both go to `TokenIssuer.issue` as they are. */
  readonly seed: TokenSeed
  /** At or after the start of the session, whatever the clock says. */
  readonly issuedAtSeconds: number
}

/**
 * Port: refresh tokens (RFC 6749 section 6, RFC 9700 section 4.14.2). `inspect` and `rotate`
 * throw `Denied` with `oauth_refused` / `invalid_grant`, and all throw `Unavailable` when the store
 * cannot tell.
 */
export interface RefreshTokens {
  /** Begins a family and returns its first refresh token. */
  open(session: Session): Promise<string>
  /**
   * The session of a token, and whether the token itself is good still: a look that changes
   * nothing. Undefined for a token that is malformed or unknown, and for a session that is over.
   */
  find(refreshToken: string): Promise<FoundSession | undefined>
  /**
   * The session of a live token that `client` presents, without using it up. Reuse of a dead one
   * ends the family here; but whatever another client presents is refused and changes nothing.
   */
  inspect(refreshToken: string, client: string): Promise<Session>
  /**
   * Uses a token up and returns its successor, in one atomic step; refuses if a cut-off covers the
   * session. Reuse ends the family and, by a cut-off of the session, its access tokens.
   */
  rotate(refreshToken: string, session: Session): Promise<Rotation>
  /** Ends a token's family and the session's access tokens; nothing happens for an unknown one. */
  end(refreshToken: string): Promise<void>
}
