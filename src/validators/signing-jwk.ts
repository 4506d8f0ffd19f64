/** The gateway's own signing keys, as private JWKs. */

import * as z from 'zod/mini'
import { isPublished } from '../crypto/weak-keys.ts'
import { last, superRefine } from './checks.ts'
import { type Algorithm, MAX_KEY_ID_CHARS, sortKeys } from './jwk.ts'

const member = z.string('is missing').check(
  z.regex(/^[\w-]+$/, 'must be base64url'),
  // No number of bytes has this length.
  z.refine((text) => text.length % 4 !== 1, 'must be base64url'),
)

const wholeSeconds = z.number('must be whole seconds').check(
  superRefine((seconds, { addIssue }) => {
    if (!(Number.isSafeInteger(seconds) && seconds >= 0)) addIssue(last('must be whole seconds'))
  }),
)

const common = {
  kid: z
    .string('is missing')
    .check(z.minLength(1, 'must not be empty'), z.maxLength(MAX_KEY_ID_CHARS, 'is too long')),
  use: z.optional(z.literal('sig', "must be 'sig'")),
  key_ops: z.optional(
    z
      .array(z.string())
      .check(z.refine((operations) => operations.includes('sign'), "must include 'sign'")),
  ),
  nbf: z.optional(wholeSeconds),
  exp: z.optional(wholeSeconds),
}
const alg = <Name extends Algorithm>(name: Name) =>
  z._default(z.literal(name, `must be ${name}`), name)

/** What the gateway's keys sign with. `Ed25519` and `EdDSA` are two names of one (RFC 9864). */
export const SIGNING_ALGORITHMS = ['ES256', 'RS256', 'Ed25519', 'EdDSA'] as const

const ecJwk = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256', 'must be P-256'),
  x: member,
  y: member,
  d: member,
  ...common,
  alg: alg('ES256'),
})
const okpJwk = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519', 'must be Ed25519'),
  x: member,
  d: member,
  ...common,
  alg: z._default(z.enum(['Ed25519', 'EdDSA'], 'must be Ed25519 or EdDSA'), 'EdDSA'),
})
const rsaJwk = z.object({
  kty: z.literal('RSA'),
  n: member,
  e: member,
  d: member,
  p: member,
  q: member,
  dp: member,
  dq: member,
  qi: member,
  ...common,
  alg: alg('RS256'),
})

/** A private key. It signs from `nbf` until `exp` (seconds since the epoch). */
export type SigningJwk = z.output<typeof ecJwk | typeof okpJwk | typeof rsaJwk>

/** Its own type: that of `z.discriminatedUnion()` differs between versions of zod. */
const signingJwk: z.ZodMiniType<SigningJwk> = z.discriminatedUnion(
  'kty',
  [ecJwk, okpJwk, rsaJwk],
  'must be EC, OKP or RSA',
)

export type SigningAlgorithm = SigningJwk['alg']

export const soundJwk = signingJwk.check(
  superRefine((key, context) => {
    const [weakness] = sortKeys({ keys: [publicJwk(key)] }, [key.alg])?.ignored ?? []
    if (weakness !== undefined) context.addIssue(`is malformed or too weak (${weakness.check})`)
    if (key.nbf !== undefined && key.exp !== undefined && key.nbf >= key.exp) {
      context.addIssue('must have an exp after its nbf')
    }
    if (isPublished(key.kty === 'RSA' ? key.n : key.x)) {
      context.addIssue('is published in a standard; generate another key')
    }
  }),
)

/**
 * `SIGNING_KEYS`: a JWK Set of private keys. Other members are dropped. Does NOT check that a
 * private key matches its public key: the first signature does.
 */
export const signingKeys = z
  .object(
    {
      keys: z.array(soundJwk).check(
        superRefine(({ length }, { addIssue }) => {
          if (length === 0) addIssue(last('must not be empty'))
        }),
      ),
    },
    'must be a JWK Set',
  )
  .check(
    z.refine(({ keys }) => new Set(keys.map(({ kid }) => kid)).size === keys.length, {
      error: 'must have a unique kid for each key',
      path: ['keys'],
    }),
    z.refine(({ keys }) => keys.some(({ exp }) => exp === undefined || Date.now() < exp * 1000), {
      error: 'must contain a key that has not expired',
      path: ['keys'],
    }),
  )

export function publicJwk(key: SigningJwk) {
  const { kid, alg } = key
  const use = 'sig'
  switch (key.kty) {
    case 'EC':
      return { kty: key.kty, crv: key.crv, x: key.x, y: key.y, kid, alg, use }
    case 'OKP':
      return { kty: key.kty, crv: key.crv, x: key.x, kid, alg, use }
    case 'RSA':
      return { kty: key.kty, n: key.n, e: key.e, kid, alg, use }
  }
}

export function algorithmsOf(keys: readonly SigningJwk[]): Algorithm[] {
  return [...new Set(keys.map((key) => key.alg))]
}
