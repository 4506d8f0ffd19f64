/** The verified identity of a caller, and the port that verifies tokens. */
import type { WaitUntil } from '../isolate/after-response.ts'
import type { Signer } from '../problems/reasons.ts'

/**
 * A verified identity. Every field comes from a token with a checked signature, issuer, audience,
 * type and times, or from the record of a reference (an opaque token or API key) of the gateway.
 * `subject` is unique only together with `issuer` (RFC 9068 section 5).
 */
export interface Principal {
  /** The issuer that vouches for the subject: `iss`, or `sub_iss` of an exchanged token. */
  readonly issuer: string
  /** `iss`. Clients and sessions are unique only together with it. */
  readonly tokenIssuer: string
  /** `sub`: 1 to 255 printable characters. */
  readonly subject: string
  /** `client_id`, or else `azp`. */
  readonly client: string | undefined
  /** The id of the API key that the caller presented. A rotation does not change it. */
  readonly key?: string | undefined
  /** The plan that the token names, from the issuer's plan claim. */
  readonly plan?: string | undefined
  /** The issuer's tenant claim (default `tenant`). */
  readonly tenant: string | undefined
  /** `sid`. */
  readonly session: string | undefined
  /** The issuer's roles claim (default `roles`). Never used as property names. */
  readonly roles: readonly string[]
  /** `scope`. */
  readonly scopes: readonly string[]
  /** `aud`. Undefined: not known. */
  readonly audiences?: readonly string[] | undefined
  /** The effect of the scopes on the permissions of the roles; see `createAuthorizer`. */
  readonly scopeUse?: ScopeUse | undefined
  /**
   * `jti`, or the configured claim; the SHA-256 of a token without one that its issuer verifies.
   * Another token without one can be revoked only by a cutoff.
   */
  readonly tokenId: string | undefined
  /** Identifies the token in revocation and audit; see `tokenIdHash`. Undefined without a `jti`. */
  readonly tokenIdHash: string | undefined
  /**
   * `cnf.jkt` (RFC 9449 section 6): base64url SHA-256 thumbprint of the key for which the caller
   * must present a proof with each request. Undefined for a plain bearer token.
   */
  readonly confirmation: string | undefined
  /** `iat`, rounded down to a second, so that a revocation cutoff applies in doubt; else 0. */
  readonly issuedAtSeconds: number
  /** `exp`, seconds since the epoch; `Infinity` for an API key that does not expire. */
  readonly expiresAtSeconds: number
  /** Present if the caller is a browser with a session. `tokenId` is then the session's id. */
  readonly signIn?: SignInFacts | undefined
  /** Headers with claims for the origin, encoded: see `identityHeaders` of a policy. */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined
  /** What the token says about the login of its user. See `loginOf` for both kinds of callers. */
  readonly login?: LoginFacts | undefined
}

/** How and when a user authenticated (OpenID Connect Core section 2, RFC 9068 section 2.2.1). */
export interface LoginFacts {
  /** `acr`: the authentication context class. */
  readonly acr?: string | undefined
  /** `amr`: the methods of the authentication (RFC 8176). */
  readonly amr?: readonly string[] | undefined
  /**
   * `auth_time` in whole seconds since the epoch, never later than the verification of the token.
   * Absent: the issuer does not say when the user authenticated.
   */
  readonly authTimeSeconds?: number | undefined
}

/** Returns what is known of the login of a caller. Undefined: nothing, as for an API key. */
export const loginOf = ({ signIn, login }: Principal): LoginFacts | undefined => signIn ?? login

/** How and when the user of a browser session signed in. Times are seconds since the epoch. */
export interface SignInFacts extends LoginFacts {
  /** The `sub` of the ID token, which the issuer's `subjectClaim` may replace in `subject`. */
  readonly providerSubject: string
  /** The only host at which the reference is valid. Absent: that of `PUBLIC_URL`. */
  readonly host?: string | undefined
  /** The name of the user, as the provider states it. It identifies no one. Absent: it states none. */
  readonly name?: string | undefined
  /** From then on, a request renews the session's reference. */
  readonly renewAtSeconds: number
  /** The end of the session, which no renewal changes. */
  readonly endsAtSeconds: number
  /** From then on, the tokens of the provider are refreshed. Absent: there are none. */
  readonly refreshAtSeconds?: number | undefined
}

/**
 * Returns the issuer that vouches for a party of a caller: its API key, subject, client or tenant. The
 * issuer of the token registers the client, even if another issuer vouches for the subject.
 */
export const vouchingIssuer = (
  { issuer, tokenIssuer }: Pick<Principal, 'issuer' | 'tokenIssuer'>,
  by: string,
): string => (by === 'client' ? tokenIssuer : issuer)

export type ScopeUse = 'ignore' | 'narrow' | 'grant'

/**
 * Port: verifies a bearer token and returns its principal. Throws `Denied` for an invalid token,
 * and `Unavailable` if the keys to verify it cannot be fetched, or its issuer does not respond. Returns the same object (`===`) for
 * the same token while it is cached. Does NOT check revocation, or that the caller holds the key of
 * `confirmation`.
 */
export interface TokenVerifier {
  verify(token: string, waitUntil?: WaitUntil): Promise<Principal>
  /** Returns the principal of a cached token. Undefined if `verify` would have to check it. */
  recall(token: string): Principal | undefined
  /**
   * Returns the issuer that verifies a text that is not a JWT; undefined if `verify` refuses the text.
   * Default: `verify` accepts only JWTs.
   */
  readonly opaqueIssuerOf?: ((text: string) => string | undefined) | undefined
  /**
   * Returns whose token a text would be if it were authentic; undefined: of no trusted issuer. Does NOT
   * verify anything. Default: no token has a signer.
   */
  readonly signerOf?: ((text: string) => Signer | undefined) | undefined
}
