/** `ISSUERS`: trusted issuers of access tokens and their keys. */
import { base64url, type JSONWebKeySet } from 'jose'
import { isGuessable, isPublished } from '../crypto/weak-keys.ts'
import { ALGORITHMS, sortKeys } from './jwk.ts'
import { nonEmpty, text, unique } from './schema-parts.ts'
import { algorithmsOf, publicJwk, type SigningJwk } from './signing-jwk.ts'
import { httpUrl, isPrivateLine } from './variables.ts'
import * as z from './zod.ts'

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

const claimName = text(256)

const issuer = z
  .strictObject({
    issuer: text(2_048),
    audience: z.union([nonEmpty, z.array(nonEmpty).check(z.minLength(1))], {
      error: 'must be a name, or an array of names',
    }),
    jwksUri: z.optional(
      httpUrl.check(z.refine(isPrivateLine, 'must be https, unless it is on a loopback address')),
    ),
    jwks: z.optional(jwks),
    algorithms: z._default(z.array(z.enum(ALGORITHMS)).check(z.minLength(1)), [
      ...DEFAULT_ALGORITHMS,
    ]),
    typ: z._default(nonEmpty, DEFAULT_TOKEN_TYPE),
    clockTolerance: z._default(
      z.number().check(z.minimum(0), z.maximum(MAX_CLOCK_TOLERANCE_SECONDS)),
      DEFAULT_CLOCK_TOLERANCE_SECONDS,
    ),
    maxTokenAge: z._default(z.number().check(z.positive()), DEFAULT_MAX_TOKEN_AGE_SECONDS),
    rolesClaim: z._default(claimName, 'roles'),
    tenantClaim: z._default(claimName, 'tenant'),
  })
  .check(
    z.superRefine((config, context) => {
      if ((config.jwksUri === undefined) === (config.jwks === undefined)) {
        context.addIssue('requires exactly one of jwksUri and jwks')
      }
      for (const mistake of mistakesInKeys(config)) {
        context.addIssue({ code: 'custom', ...mistake })
      }
    }),
  )

/** Times are in seconds. */
export type IssuerConfig = z.infer<typeof issuer>

export const issuers = z.array(issuer).check(unique('issuer', 'duplicate issuer'))

/** Every configured key must be usable: an ignored one would make tokens fail later. */
function* mistakesInKeys(config: z.output<typeof issuer>) {
  const { algorithms, jwks: set } = config
  if (set === undefined) {
    if (algorithms.includes('HS256')) {
      yield { path: ['algorithms'], message: 'HS256 requires a secret in jwks, not a jwksUri' }
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
