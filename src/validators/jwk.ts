/** Validates untrusted JSON Web Keys, and decides which signatures each key may verify. */
import { base64url } from 'jose'
import * as z from 'zod/mini'
import { ed25519Fault, isRocaModulus } from '../crypto/weak-keys.ts'
import { superRefine } from './checks.ts'
import { converted, text } from './schema-parts.ts'

/** Supported signature algorithms (RFC 7518, RFC 8037, RFC 9864). Never `none`. */
// biome-ignore format: a table
export const ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512',
  'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'HS256',
] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** NIST SP 800-131A, RFC 7518 section 3.3. */
export const MIN_RSA_BITS = 2048
/** Verification time is quadratic in the modulus, and no issuer uses larger keys. */
const MAX_RSA_BITS = 8192
/** Smaller exponents have caused forgeries. */
const MIN_RSA_EXPONENT = 65_537
/** Larger exponents allow denial of service. */
const MAX_RSA_EXPONENT_BYTES = 4
/** RFC 7518 section 3.2: an HS256 key is at least as long as the hash. */
const MIN_SECRET_BYTES = 32
export const MAX_KEY_ID_CHARS = 256
/** Each key is imported when its set arrives. A provider needs only a few. */
const MAX_KEYS = 128

/** Octets of a coordinate (RFC 7518 section 6.2.1.2) and the algorithm of each curve. */
const CURVES = {
  'P-256': { octets: 32, algorithm: 'ES256' },
  'P-384': { octets: 48, algorithm: 'ES384' },
  'P-521': { octets: 66, algorithm: 'ES512' },
} as const
const ED25519_OCTETS = 32

const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const

/** Decodes base64url without padding. Unused bits must be 0: each value has one encoding. */
export const octets = converted(
  z
    .string()
    .check(
      z.regex(/^[\w-]+$/, { error: 'base64url', abort: true }),
      z.refine(isCanonical, 'base64url'),
    ),
  base64url.decode,
)

function isCanonical(text: string): boolean {
  return text.length % 4 !== 1 && base64url.encode(base64url.decode(text)) === text
}

const ed25519Point = octets.check(
  z.refine(({ length }) => length === ED25519_OCTETS, { error: 'length', abort: true }),
  superRefine((bytes, context) => {
    const fault = ed25519Fault(bytes)
    if (fault !== undefined) context.addIssue(fault)
  }),
)

/** A member of a private key: signatures of a published private key prove nothing. */
const unpublished = z.optional(z.never('private'))

const common = {
  kid: z.optional(text(MAX_KEY_ID_CHARS)),
  alg: z.optional(z.string()),
  use: z.optional(z.literal('sig')),
  key_ops: z.optional(
    z.array(z.string()).check(z.refine((operations) => operations.includes('verify'))),
  ),
  exp: z.optional(z.number()),
}

const modulus = octets.check(
  z.refine((n) => bitLength(n) >= MIN_RSA_BITS && bitLength(n) <= MAX_RSA_BITS, {
    error: 'size',
    abort: true,
  }),
  z.refine((n) => ((n.at(-1) ?? 0) & 1) === 1, 'even'),
  z.refine((n) => !isRocaModulus(n), 'roca'),
)
const exponent = octets.check(
  z.refine((e) => e.length <= MAX_RSA_EXPONENT_BYTES, 'size'),
  z.refine((e) => integer(e) >= MIN_RSA_EXPONENT && integer(e) % 2 === 1, 'value'),
)

const rsa = z.object({
  kty: z.literal('RSA'),
  ...common,
  d: unpublished,
  p: unpublished,
  q: unpublished,
  dp: unpublished,
  dq: unpublished,
  qi: unpublished,
  oth: unpublished,
  k: unpublished,
  n: modulus,
  e: exponent,
})
const ec = z
  .object({
    kty: z.literal('EC'),
    ...common,
    d: unpublished,
    k: unpublished,
    crv: z.enum(['P-256', 'P-384', 'P-521']),
    x: octets,
    y: octets,
  })
  .check(
    z.refine(
      ({ crv, x, y }) => [x, y].every(({ length }) => length === CURVES[crv].octets),
      'length',
    ),
  )
const okp = z.object({
  kty: z.literal('OKP'),
  ...common,
  d: unpublished,
  k: unpublished,
  crv: z.literal('Ed25519'),
  x: ed25519Point,
})
const oct = z.object({
  kty: z.literal('oct'),
  ...common,
  k: octets.check(z.refine((k) => k.length >= MIN_SECRET_BYTES, 'length')),
})

const verificationJwk = z.discriminatedUnion('kty', [rsa, ec, okp, oct])

export interface UsableJwk {
  /** Position in the set. */
  readonly index: number
  readonly kid: string | undefined
  /** The algorithms that the key's type, its `alg` and the issuer all allow. Never empty. */
  readonly algorithms: readonly Algorithm[]
  /** `exp` of the key itself, seconds since the epoch. */
  readonly expiresAtSeconds: number | undefined
  /** Only the members that the import of the key needs. */
  readonly jwk: JsonWebKey
}

/** A key, or a part of its algorithms, that is not used. For logs. */
export interface IgnoredKey {
  /** Position in the set. */
  readonly index: number
  /** The member or rule that made it unusable. */
  readonly check: string
  /** Of keys that share a `kid`: that `kid`, and the algorithms for which it is ambiguous. */
  readonly kid?: string | undefined
  readonly algorithms?: readonly Algorithm[]
}

const jwkSet = z.object({ keys: z.array(z.unknown()).check(z.maxLength(MAX_KEYS)) })

/**
 * Sorts the keys of a JWK Set (RFC 7517 section 5) into usable and ignored ones. Returns undefined
 * if the value is not a JWK Set or has more than 128 keys.
 *
 * Members that are null are absent. A key is ignored, never repaired, if it is malformed, weak, private, not for signatures, or of a
 * type for which `allowed` has no algorithm. Without `alg`, a key gets all algorithms of `allowed` that
 * its type supports. A `kid` and an algorithm, and so the type, select a key (section 4.5): keys that
 * share both lose that algorithm, unless they are the same key. Does NOT check that an EC point lies
 * on its curve (its import does), nor the clock.
 */
export function sortKeys(set: unknown, allowed: readonly Algorithm[]) {
  const parsed = jwkSet.safeParse(set)
  if (!parsed.success) return undefined
  const usable: UsableJwk[] = []
  const ignored: IgnoredKey[] = []
  for (const [index, written] of parsed.data.keys.entries()) {
    const candidate = withoutNulls(written)
    const key = verificationJwk.safeParse(candidate)
    if (!key.success) {
      ignored.push({ index, check: checkOf(key.error) })
      continue
    }
    const { kid, alg, exp: expiresAtSeconds } = key.data
    const algorithms = algorithmsFor(key.data).filter(
      (name) => allowed.includes(name) && (alg === undefined || alg === name),
    )
    if (algorithms.length === 0) {
      ignored.push({ index, check: 'alg' })
      continue
    }
    // The original members, because the parsed ones are bytes.
    const jwk = material(candidate as JsonWebKey)
    usable.push({ index, kid, algorithms, expiresAtSeconds, jwk })
  }
  const selected = usable.map((key) => {
    const { index, kid } = key
    const rivals = usable.filter((other) => other.kid === kid && other !== key)
    const duplicate: Algorithm[] = []
    const algorithms = key.algorithms.filter((name) => {
      const others = rivals.filter((other) => other.algorithms.includes(name))
      const isAmbiguous = kid !== undefined && others.some(({ jwk }) => !isSameKey(jwk, key.jwk))
      if (isAmbiguous) duplicate.push(name)
      return (
        !isAmbiguous &&
        !others.some((other) => other.index < index && isSameKey(other.jwk, key.jwk))
      )
    })
    if (duplicate.length > 0)
      ignored.push({ index, check: 'kid_duplicate', kid, algorithms: duplicate })
    return { ...key, algorithms }
  })
  return { usable: selected.filter(({ algorithms }) => algorithms.length > 0), ignored }
}

/** Reports whether two JSON Web Keys are one key, whatever they say about its use. */
export const isSameKey = (one: JsonWebKey, another: JsonWebKey): boolean =>
  JSON.stringify(material(one)) === JSON.stringify(material(another))

function algorithmsFor(key: z.output<typeof verificationJwk>): readonly Algorithm[] {
  switch (key.kty) {
    case 'RSA':
      return RSA_ALGORITHMS
    case 'EC':
      return [CURVES[key.crv].algorithm]
    case 'OKP':
      return ['EdDSA', 'Ed25519']
    case 'oct':
      return ['HS256']
  }
}

/** Some serializers write members that an object does not have as null. */
export const withoutNulls = (key: unknown): unknown =>
  typeof key === 'object' && key !== null && !Array.isArray(key)
    ? Object.fromEntries(Object.entries(key).filter(([, value]) => value !== null))
    : key

/** Returns the members that define a public key (RFC 7638 section 3.2) or a symmetric key. */
function material({ kty, n, e, crv, x, y, k }: JsonWebKey): JsonWebKey {
  const members = { kty, n, e, crv, x, y, k }
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined),
  ) as unknown as JsonWebKey
}

function checkOf({ issues: [issue] }: z.core.$ZodError): string {
  const member = issue?.path.join('.') ?? ''
  return issue?.code === 'custom' ? `${member}_${issue.message}` : member || 'key'
}

/** Does not count leading zeros. */
function bitLength(bigEndian: Uint8Array): number {
  const start = bigEndian.findIndex((byte) => byte !== 0)
  if (start === -1) return 0
  return (bigEndian.length - start) * 8 - (Math.clz32(bigEndian[start] ?? 0) - 24)
}

/** Exact for at most 6 bytes. */
function integer(bigEndian: Uint8Array): number {
  return bigEndian.reduce((value, byte) => value * 256 + byte, 0)
}
