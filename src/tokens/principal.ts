/** Who is asking: what a verified token says about its bearer. */

/**
 * A verified identity. Every field comes from a token whose signature, issuer, audience, type and
 * times were checked, or from the record of a reference that the gateway issued; `subject` is unique
 * only together with `issuer` (RFC 9068 section 5).
 */
export interface Principal {
  /**
   * Who vouches for the subject: `iss`, exactly as configured or, for a token that the gateway
   * issued in exchange for another issuer's (RFC 8693), that issuer (`sub_iss`).
   */
  readonly issuer: string
  /** `iss`: who issued the token. Clients and sessions are unique only together with it. */
  readonly tokenIssuer: string
  /** `sub`: 1 to 255 printable characters. */
  readonly subject: string
  /** `client_id`, else `azp`. */
  readonly client: string | undefined
  /** The issuer's tenant claim (default `tenant`). */
  readonly tenant: string | undefined
  /** `sid`. */
  readonly session: string | undefined
  /** The issuer's roles claim (default `roles`): own strings only, never looked up as names. */
  readonly roles: readonly string[]
  /** `scope`, split at spaces (RFC 6749 section 3.3). */
  readonly scopes: readonly string[]
  /** `jti`. A token without one can be cut off, but not revoked by itself. */
  readonly tokenId: string | undefined
  /**
   * base64url of SHA-256 over `JSON.stringify([iss, jti])`: the token's identity in revocation
   * and audit, the same for every spelling of the token. Undefined without a `jti`.
   */
  readonly tokenIdHash: string | undefined
  /**
   * `cnf.jkt` (RFC 9449 section 6): base64url SHA-256 thumbprint of the key that the bearer must
   * prove to hold at each use. Undefined for a plain bearer token.
   */
  readonly confirmation: string | undefined
  /** `iat`, whole seconds since the epoch (rounded down: a cut-off then errs to refusal). */
  readonly issuedAtSeconds: number
  /** `exp`, seconds since the epoch; `Infinity` for an API key that does not expire. */
  readonly expiresAtSeconds: number
}

/** Keeps a Worker alive until a promise has settled; the promise must not reject. */
export type WaitUntil = (promise: Promise<unknown>) => void

/**
 * Port: turns a bearer token into a principal. Throws `Denied` for a token that is not good and
 * `Unavailable` when the keys to tell are out of reach. The same token gives the same object (`===`)
 * while it is cached. Does NOT check revocation, nor that the bearer holds the key of `confirmation`.
 */
export interface TokenVerifier {
  /** `waitUntil` is for work that outlives the request, such as refreshing keys that still do. */
  verify(token: string, waitUntil?: WaitUntil): Promise<Principal>
  /** The principal of a token that is cached as good; undefined: `verify` would have to check. */
  recall(token: string): Principal | undefined
}
