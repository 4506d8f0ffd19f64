/** The life of a set of signing keys: how one begins, and how its keys follow each other. */
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import {
  activeKey,
  parseSigningKeys,
  publishedKeys,
  type SigningAlgorithm,
  type SigningJwk,
  type SigningKeyState,
  signingKeyState,
} from '../../src/tokens/signing-keys.ts'

export const SIGNING_ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const satisfies SigningAlgorithm[]
export const DEFAULT_SIGNING_ALGORITHM: SigningAlgorithm = 'ES256'

/**
 * From the rotation until the new key signs: 5 minutes for the deployment, and 5 for the copies of
 * `/.well-known/jwks.json` that others keep.
 */
export const PUBLISHED_BEFORE_USE_SECONDS = 600
/** How long the keys before it verify afterwards: the longest life of an access token, and 5 minutes. */
export const VERIFIED_AFTER_USE_SECONDS = 3_600 + 300

/** Makes a private key, RSA of 2048 bits; its `kid` is its thumbprint (RFC 7638). */
export async function generateSigningKey(alg: SigningAlgorithm): Promise<SigningJwk> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(privateKey)
  const kid = await calculateJwkThumbprint(jwk)
  const [key] = parseSigningKeys({ keys: [{ ...jwk, kid, alg, use: 'sig' }] })
  return key as SigningJwk
}

/** The algorithm of the next key, where nobody names one: that of the key that signs. */
export function algorithmOfNext(keys: readonly SigningJwk[], nowMs: number): SigningAlgorithm {
  return (activeKey(keys, nowMs) ?? keys[0])?.alg ?? DEFAULT_SIGNING_ALGORITHM
}

/**
 * The set after a rotation: `fresh` in front, to sign 10 minutes from now; the keys that it follows
 * verify for 65 minutes more; expired ones are gone. It follows the keys of its own algorithm or, if
 * none of them was to go on, all others: a set may have one line of keys for each algorithm.
 */
export function rotated(
  keys: readonly SigningJwk[],
  fresh: SigningJwk,
  nowMs: number,
): readonly SigningJwk[] {
  const nbf = Math.floor(nowMs / 1000) + PUBLISHED_BEFORE_USE_SECONDS
  const end = nbf + VERIFIED_AFTER_USE_SECONDS
  const continues = keys.some(({ alg, exp }) => alg === fresh.alg && exp === undefined)
  const followed = publishedKeys(keys, nowMs)
    .map((key) =>
      continues && key.alg !== fresh.alg ? key : { ...key, exp: Math.min(key.exp ?? end, end) },
    )
    .filter((key) => key.exp === undefined || (key.nbf ?? 0) < key.exp)
  return [{ ...fresh, nbf }, ...followed]
}

/** What may be told of a key. */
export interface KeyFacts {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly state: SigningKeyState
  /** RFC 3339, UTC; absent for a key that may sign at once. */
  readonly notBefore?: string
  /** RFC 3339, UTC; absent for a key that does not end. */
  readonly expiresAt?: string
}

/** The public facts of each key, in the order of the set. */
export function factsOf(keys: readonly SigningJwk[], nowMs: number): readonly KeyFacts[] {
  return keys.map((key) => ({
    kid: key.kid,
    alg: key.alg,
    state: signingKeyState(key, keys, nowMs),
    ...(key.nbf !== undefined && { notBefore: timeOf(key.nbf) }),
    ...(key.exp !== undefined && { expiresAt: timeOf(key.exp) }),
  }))
}

/** Whole seconds since the epoch as RFC 3339. */
export function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
