/** An entry of `ISSUERS` as a user writes it. Its comments are hover text, and descriptions in the JSON Schemas. */
import type { JWK } from 'jose'
import type { PresetName } from '../identity-providers/presets.ts'
import type { Algorithm } from './jwk.ts'
import type { TokenSource } from './token-source.ts'

/**
 * The name of a claim, such as `groups`; dots lead to a nested one, such as `realm_access.roles`. An
 * array of names is one path too, and an array of such arrays is several claims.
 */
export type ClaimSourcesInput = string | readonly string[] | readonly (string | readonly string[])[]

/** Your name, or names, for each name or pattern of the provider. */
export type NameMapInput = Readonly<Record<string, string | readonly string[]>>

/** A value that a claim may have; null permits its absence. */
type ClaimValueInput = string | number | boolean | null

/** Keys that verify signatures: a JWK Set (RFC 7517). */
export interface KeySetInput {
  /** The keys as JWKs: public ones, or secrets (`oct`) for `HS256`. A key that cannot be used is a mistake. */
  readonly keys: readonly JWK[]
}

/** Verification of tokens by a call to their issuer. */
export interface IssuerCallInput {
  /** Its URL: https, or http on a loopback address. Default: from the metadata of the issuer. */
  readonly endpoint?: string | undefined
  /** How long a positive response is used, 1 to 300 seconds, if the token does not expire before. Default 60. */
  readonly maxAgeSeconds?: number | undefined
  /** `opaque`: tokens that are not JWTs. `jwt`: the JWTs of the issuer, in place of its keys. Default `opaque`. */
  readonly form?: 'opaque' | 'jwt' | undefined
  /**
   * The beginning of every opaque token of the issuer. With several such issuers, each needs one, and none may begin
   * with another. Default none.
   */
  readonly tokenPrefix?: string | undefined
}

/** Verification by userinfo (OpenID Connect Core section 5.3), whose response does not say for which API a token is. */
export interface UserinfoInput extends IssuerCallInput {
  /** `any` states that you accept tokens of every client of the issuer, also of other applications. */
  readonly audience: 'any'
}

/** The fields of an entry of `ISSUERS`. Times are in seconds. */
export interface IssuerFields {
  /**
   * `iss` of its tokens, compared character by character. Without `jwksUri`, `jwks` and `keySet`, its metadata must
   * be found below this URL. `{tenantid}` stands for each of `tenants`.
   */
  readonly issuer: string
  /** Ids or domains of tenants, each an issuer of its own. Required exactly if `issuer` contains `{tenantid}`. */
  readonly tenants?: readonly string[] | undefined
  /** The name of this API at the issuer, or several names. One of them must be in `aud` of a token. */
  readonly audience: string | readonly string[]
  /** URL of the key set: https, or http on a loopback address. Default: from the metadata of the issuer. */
  readonly jwksUri?: string | undefined
  /** The key set itself, in place of `jwksUri`. */
  readonly jwks?: KeySetInput | undefined
  /**
   * `none`: the issuer has no key set and issues no JWTs, so a JWT that names it is refused without a call. Needs
   * `introspection` or `userinfo` of the form `opaque`. Default: it has a key set.
   */
  readonly keySet?: 'none' | undefined
  /**
   * Permitted signature algorithms. Default `RS256`, `PS256`, `ES256`, `Ed25519` and `EdDSA`. `HS256` requires a
   * secret of at least 32 bytes in `jwks`.
   */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** The one algorithm of ID tokens and logout tokens. Default: the only entry of `algorithms`, or RS256. */
  readonly idTokenAlgorithm?: Algorithm | undefined
  /**
   * Permitted `typ` of the token's header, or several. Default `at+jwt`. `none` stands for a missing `typ`; it needs a
   * rule in `require`, or `clients`.
   */
  readonly typ?: string | readonly string[] | undefined
  /** Permitted difference of the issuer's clock, 0 to 300 seconds. Default 5. */
  readonly clockTolerance?: number | undefined
  /** Longest permitted life of a token, `exp` minus `iat`, in seconds. Default 86,400. */
  readonly maxTokenAge?: number | undefined
  /** Claims with the roles of the caller; several are joined. Default `roles`. */
  readonly rolesClaim?: ClaimSourcesInput | undefined
  /** Claims with the tenant of the caller; the first with a value. Default `tenant`. */
  readonly tenantClaim?: ClaimSourcesInput | undefined
  /** Claims with the plan of the caller, for `plans()`; the first with a value. Default none. */
  readonly planClaim?: ClaimSourcesInput | undefined
  /** Claims with the subject; the first with a value. Default `sub`. */
  readonly subjectClaim?: ClaimSourcesInput | undefined
  /** Claims with the client; the first with a value. Default `client_id`, `azp`, `cid`, `appid`. */
  readonly clientClaim?: ClaimSourcesInput | undefined
  /** Claims with the session; the first with a value. Default `sid`. */
  readonly sessionClaim?: ClaimSourcesInput | undefined
  /** Claims with the id of the token, by which a single token is revoked; the first with a value. Default `jti`. */
  readonly tokenIdClaim?: ClaimSourcesInput | undefined
  /** Claims with the scopes, as text with spaces or as arrays; several are joined. Default `scope`, or else `scp`. */
  readonly scopeClaim?: ClaimSourcesInput | undefined
  /** Claims that are compared with `audience`, where tokens have no `aud`; the first with a value. Default `aud`. */
  readonly audienceClaim?: ClaimSourcesInput | undefined
  /** One character that separates several roles in one text, such as a comma. Default: a text is one role. */
  readonly rolesSeparator?: string | undefined
  /**
   * Your roles for the roles, groups or scopes of the provider. `*` stands for one or more characters. Names without a
   * match are dropped. Default: the names of the provider.
   */
  readonly rolesMap?: NameMapInput | undefined
  /** Your scopes for the scopes of the provider, as in `rolesMap`. Default: the scopes of the provider. */
  readonly scopesMap?: NameMapInput | undefined
  /**
   * What scopes do to permissions: `ignore` them, `narrow` what roles grant, or `grant` in addition. Default `narrow`.
   */
  readonly scopes?: 'ignore' | 'narrow' | 'grant' | undefined
  /** The kind of the tokens. `id` accepts ID tokens. Default `access`. */
  readonly tokenUse?: 'access' | 'id' | undefined
  /** Where tokens of the issuer are read from, 1 to 8 places. Default: the header `Authorization`. */
  readonly tokenSources?: readonly TokenSource[] | undefined
  /** Accepted clients, as names or as patterns with one `*`. Default: all. */
  readonly clients?: readonly string[] | undefined
  /**
   * Claims that a token must have, with the permitted values of each. `*` permits any value, and null permits the absence of
   * the claim. Default none.
   */
  readonly require?:
    | Readonly<Record<string, ClaimValueInput | readonly ClaimValueInput[]>>
    | undefined
  /**
   * Claims that a token must not have. Default: those of ID tokens and logout tokens, or none if `typ` is `at+jwt` alone.
   */
  readonly refuse?: readonly string[] | undefined
  /** Whether logout tokens need `exp`. `optional` accepts them for an hour after `iat`. Default `required`. */
  readonly logoutTokenExp?: 'required' | 'optional' | undefined
  /** The issuer verifies its tokens by introspection (RFC 7662). Needs `introspection()` in the policy. Default none. */
  readonly introspection?: IssuerCallInput | undefined
  /** The issuer verifies its tokens by userinfo. Needs `introspection()` in the policy. Default none. */
  readonly userinfo?: UserinfoInput | undefined
}

/** An entry that a preset completes. */
export interface PresetIssuerInput extends Partial<IssuerFields> {
  /** The identity provider. Fields of the entry replace those of its preset; rules in `require` are added to it. */
  readonly preset: PresetName
}

/** A trusted issuer of access tokens, as a user writes it in `ISSUERS` or for `defineIssuers`. */
export type IssuerInput = IssuerFields | PresetIssuerInput
