/** `ISSUERS`: trusted issuers of access tokens and their keys. */
import { base64url, type JSONWebKeySet } from 'jose'
import * as z from 'zod/mini'
import { isGuessable, isPublished } from '../crypto/weak-keys.ts'
import { superRefine } from './checks.ts'
import { type ClaimPath, claimPath, claimSources, parsePaths } from './claim-path.ts'
import { list, MAX_NAMES, requirements } from './claim-requirements.ts'
import { callOf, introspection, mistakesInPrefixes, userinfo } from './introspection.ts'
import type { IssuerFields } from './issuer-input.ts'
import { withPreset } from './issuer-preset.ts'
import { ALGORITHMS, sortKeys } from './jwk.ts'
import { nameMap, namePattern } from './name-pattern.ts'
import { converted, nonEmpty, text, trimmed, unique } from './schema-parts.ts'
import { algorithmsOf, publicJwk, type SigningJwk } from './signing-jwk.ts'
import { tokenSources } from './token-source.ts'
import { httpUrl, isPrivateLine, privateUrl } from './variables.ts'

/** Signature algorithms of a token issuer, unless it names its own (RFC 8725 section 3.1). */
export const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'Ed25519', 'EdDSA'] as const
/** RFC 9068 section 2.1. */
export const DEFAULT_TOKEN_TYPE = 'at+jwt'
export const DEFAULT_CLOCK_TOLERANCE_SECONDS = 5
/** A larger tolerance would keep expired tokens valid. */
export const MAX_CLOCK_TOLERANCE_SECONDS = 300
/** Access tokens older than one day are refused by default, even if they have not expired. */
export const DEFAULT_MAX_TOKEN_AGE_SECONDS = 86_400

const jwks = z.custom<JSONWebKeySet>((value) => {
  const keys = (value as { keys?: unknown } | null)?.keys
  return Array.isArray(keys) && keys.length > 0
}, 'must be a JWK Set with at least one key (RFC 7517 section 5)')

export const DEFAULT_ROLES_CLAIM = 'roles'
export const DEFAULT_TENANT_CLAIM = 'tenant'
export const DEFAULT_SCOPE_USE = 'narrow'
/** Names the absence of `typ`, in the field `typ`. */
export const NO_TYPE = 'none'
/** Claims of ID tokens and logout tokens (OpenID Connect Core, Back-Channel Logout). */
export const MARKS_OF_OTHER_TOKENS: readonly string[] = [
  'nonce',
  'at_hash',
  'c_hash',
  's_hash',
  'events',
]

const MISSING = 'is missing'

/** Placeholder for each tenant in the issuer of a provider that serves many. */
const TENANT_PLACE = '{tenantid}'
/** Neither `common` nor another alias of several tenants may be one. */
const tenant = z.string().check(z.regex(/^[\w.-]*[\d.][\w.-]*$/, 'must be a tenant id or domain'))

export const issuer = z
  .strictObject({
    issuer: z
      .string({ error: ({ input }) => (input === undefined ? MISSING : undefined) })
      .check(z.trim(), z.minLength(1), z.maxLength(2_048)),
    tenants: z.optional(list(tenant)),
    audience: z.union([trimmed, z.array(trimmed).check(z.minLength(1))], {
      error: ({ input }) =>
        input === undefined ? MISSING : 'must be a name, or an array of names',
    }),
    jwksUri: z.optional(privateUrl),
    jwks: z.optional(jwks),
    keySet: z.optional(z.literal('none', { error: 'must be "none"' })),
    algorithms: z._default(z.array(z.enum(ALGORITHMS)).check(z.minLength(1)), [
      ...DEFAULT_ALGORITHMS,
    ]),
    /** Of ID tokens and logout tokens. Default: the only entry of `algorithms`, or RS256. */
    idTokenAlgorithm: z.optional(z.enum(ALGORITHMS)),
    typ: z._default(z.union([nonEmpty, list(nonEmpty)]), DEFAULT_TOKEN_TYPE),
    clockTolerance: z._default(
      z.number().check(z.minimum(0), z.maximum(MAX_CLOCK_TOLERANCE_SECONDS)),
      DEFAULT_CLOCK_TOLERANCE_SECONDS,
    ),
    maxTokenAge: z._default(z.number().check(z.positive()), DEFAULT_MAX_TOKEN_AGE_SECONDS),
    rolesClaim: z._default(claimSources, DEFAULT_ROLES_CLAIM),
    tenantClaim: z._default(claimSources, DEFAULT_TENANT_CLAIM),
    /** Names the plan of the caller, for `plans()`. */
    planClaim: z.optional(claimSources),
    subjectClaim: z.optional(claimSources),
    clientClaim: z.optional(claimSources),
    sessionClaim: z.optional(claimSources),
    tokenIdClaim: z.optional(claimSources),
    scopeClaim: z.optional(claimSources),
    /** The claim that is compared with `audience`, where tokens have no `aud`. */
    audienceClaim: z.optional(claimSources),
    /** Splits a text with several roles. */
    rolesSeparator: z.optional(text(1)),
    rolesMap: z.optional(nameMap),
    scopesMap: z.optional(nameMap),
    scopes: z.optional(z.enum(['ignore', 'narrow', 'grant'])),
    tokenUse: z.optional(z.enum(['access', 'id'])),
    /** Default: `Authorization`. */
    tokenSources: z.optional(tokenSources),
    /** Patterns of accepted clients. */
    clients: z.optional(list(namePattern)),
    require: z.optional(requirements),
    /** Claims that a token must not have. */
    refuse: z.optional(z.array(text(512)).check(z.maxLength(MAX_NAMES))),
    /** `optional`: the issuer sends logout tokens without `exp`. `iat` bounds their life. */
    logoutTokenExp: z.optional(z.enum(['required', 'optional'])),
    /** Verifies tokens by a call to the issuer. */
    introspection: z.optional(introspection),
    userinfo: z.optional(userinfo),
  })
  .check(
    superRefine((config, context) => {
      if (config.jwksUri !== undefined && config.jwks !== undefined) {
        context.addIssue('has both jwksUri and jwks; remove one')
      }
      if (config.introspection !== undefined && config.userinfo !== undefined) {
        context.addIssue('has both introspection and userinfo; remove one')
      }
      const ofSomeTenant = config.issuer.replaceAll(TENANT_PLACE, 'tenant')
      const called = config.keySet && callOf(config)
      if (needsDiscovery(config) && !called?.endpoint && !hasMetadata(ofSomeTenant)) {
        const message = NO_METADATA + (called ? 'endpoint' : 'jwksUri')
        context.addIssue({ code: 'custom', path: ['issuer'], message })
      }
      if (config.keySet && !(needsDiscovery(config) && called?.form === 'opaque')) {
        context.addIssue({ code: 'custom', path: ['keySet'], message: NEEDS_CALL })
      }
      if (config.issuer.includes(TENANT_PLACE) !== (config.tenants !== undefined)) {
        const message = `must be given exactly if the issuer contains ${TENANT_PLACE}`
        context.addIssue({ code: 'custom', path: ['tenants'], message })
      }
      for (const mistake of [...mistakesInKeys(config), ...mistakesInRules(config)]) {
        context.addIssue({ code: 'custom', ...mistake })
      }
    }),
  )

/**
 * A token that does not state its type, or its audience, may be any token of its issuer. A rule on
 * another claim must then accept access tokens alone.
 */
function* mistakesInRules({ require = {}, ...config }: z.output<typeof issuer>) {
  for (const name of Object.keys(require)) {
    if (!claimPath.safeParse(name).success)
      yield { path: ['require', name], message: 'must be the name of a claim' }
  }
  const isCompensated =
    config.clients !== undefined ||
    Object.values(require).some((value) => ![value].flat().includes(null))
  if (isCompensated) return
  const remedy = 'requires a rule in require, such as { "token_use": "access" }, or clients'
  if ([config.typ].flat().includes(NO_TYPE)) {
    yield { path: ['typ'], message: `accepts tokens without typ, so the entry ${remedy}` }
  }
  if (parsePaths(config.audienceClaim ?? []).some((path) => path.join() === 'iss')) {
    yield { path: ['audienceClaim'], message: `accepts every token of the issuer, so it ${remedy}` }
  }
}

/** Returns the claims that a token must not have. */
export function listRefusedClaims({ refuse, tokenUse, typ }: IssuerConfig): readonly string[] {
  if (refuse !== undefined) return refuse
  if (tokenUse === 'id') return ['events']
  // The type alone identifies an access token (RFC 9068 section 2.1).
  const isTyped = [typ].flat().every((one) => mediaType(one) === DEFAULT_TOKEN_TYPE)
  return isTyped ? [] : MARKS_OF_OTHER_TOKENS
}

/**
 * Returns the one algorithm of an issuer's ID tokens and logout tokens. RS256 is the default of OpenID
 * Connect Dynamic Client Registration 1.0 section 2 (`id_token_signed_response_alg`).
 */
export function idTokenAlgorithmOf({
  idTokenAlgorithm,
  algorithms: [first, ...others],
}: Pick<IssuerConfig, 'idTokenAlgorithm' | 'algorithms'>) {
  return idTokenAlgorithm ?? (others.length === 0 && first !== undefined ? first : 'RS256')
}

/** Normalizes a media type (RFC 7515 section 4.1.9). */
export const mediaType = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')

const NO_METADATA =
  'must be an https URL without query and fragment, so that its metadata can be found; or set '
const NEEDS_CALL =
  '"none" requires introspection or userinfo with the form "opaque", and neither jwksUri nor jwks'

/** Reports whether the key set is found in the issuer's metadata. */
export const needsDiscovery = ({ jwksUri, jwks }: Pick<IssuerConfig, 'jwksUri' | 'jwks'>) =>
  jwksUri === undefined && jwks === undefined

/** RFC 8414 section 2. */
const hasMetadata = (issuer: string) =>
  httpUrl.safeParse(issuer).success && isPrivateLine(issuer) && !/[?#]/.test(issuer)

type Parsed = z.output<typeof issuer>
type Defaulted = {
  [Name in keyof Parsed]-?: undefined extends Parsed[Name] ? never : Name
}[keyof Parsed]

/** The parsed fields, with the comments of those that a user writes. */
type Described<Name extends keyof IssuerFields> = {
  [Field in keyof Pick<IssuerFields, Name>]: Parsed[Field]
}

/** Times are in seconds. */
export interface IssuerConfig
  extends Described<Exclude<keyof IssuerFields, Defaulted>>,
    Required<Described<Defaulted>> {
  /** Claim paths by the name of a header for the origin: from the policy, not from a user's entry. */
  readonly identityHeaders?: ReadonlyMap<string, ClaimPath> | undefined
}

/** Returns the issuers, and marks those with one of these names: a feature says that they have no key set. */
export const markKeyless = (
  all: readonly IssuerConfig[],
  names: readonly string[],
): IssuerConfig[] =>
  all.map((config) =>
    // Keys that the entry names are used, whatever its provider publishes.
    needsDiscovery(config) && names.includes(config.issuer)
      ? { ...config, keySet: 'none' }
      : config,
  )

export const issuers = converted(
  z.array(z.pipe(z.transform(withPreset), issuer)),
  (configs): IssuerConfig[] => configs.flatMap(ofTenants),
).check(
  unique('issuer', 'duplicate issuer'),
  superRefine((configs, context) => {
    for (const mistake of mistakesInPrefixes(configs)) context.addIssue(mistake)
  }),
)

/** Issuers in a policy file, which others may read. */
export const publicIssuers = z.pipe(
  z.array(
    z.unknown().check(
      z.refine((entry) => !hasSecret(entry as Partial<IssuerFields> | null), {
        error: 'contains a secret, and a policy must not: set ISSUERS instead',
        path: ['jwks'],
      }),
    ),
  ),
  issuers,
)

/** Secret keys have the member `k`, and private ones `d`. */
const hasSecret = (entry: Partial<IssuerFields> | null): boolean =>
  [entry?.jwks?.keys].flat().some((key) => (key?.k ?? key?.d) !== undefined)

/** Returns the configuration of each tenant. */
function ofTenants({ tenants, ...config }: IssuerConfig): readonly IssuerConfig[] {
  const { issuer, jwksUri } = config
  return (tenants ?? ['']).map((tenant) => ({
    ...config,
    issuer: issuer.replaceAll(TENANT_PLACE, tenant),
    jwksUri: jwksUri?.replaceAll(TENANT_PLACE, tenant),
  }))
}

/** Every configured key must be usable: an ignored one would make tokens fail later. */
function* mistakesInKeys(config: z.output<typeof issuer>) {
  const { algorithms, jwks: set } = config
  if (set === undefined) {
    if (algorithms.includes('HS256')) {
      yield { path: ['algorithms'], message: 'HS256 requires a secret in jwks' }
    }
    return
  }
  const { usable, ignored } = sortKeys(set, algorithms) ?? { usable: [], ignored: [] }
  for (const { index, check } of ignored) {
    yield { path: ['jwks', 'keys', index], message: `is not usable (${check})` }
  }
  if (algorithms.includes('HS256') && !usable.some(({ jwk }) => jwk.kty === 'oct')) {
    yield { path: ['algorithms'], message: 'HS256 requires a secret of at least 32 bytes in jwks' }
  }
  for (const { jwk } of usable) {
    if (jwk.k === undefined) continue
    if (isPublished(jwk.k) || isGuessable(base64url.decode(jwk.k))) {
      yield { path: ['jwks', 'keys'], message: 'contains a guessable secret; use random bytes' }
    }
  }
}

/** Returns the gateway as an issuer, with its public keys: no request is needed to fetch them. */
export function ownIssuer(
  publicUrl: string,
  keys: readonly SigningJwk[],
): IssuerConfig & { jwks: JSONWebKeySet } {
  const [own] = issuers.parse([
    {
      issuer: publicUrl,
      audience: publicUrl,
      jwks: { keys: keys.map((key) => ({ ...publicJwk(key), exp: key.exp })) },
      algorithms: algorithmsOf(keys),
    },
  ]) as [ReturnType<typeof ownIssuer>]
  return own
}
