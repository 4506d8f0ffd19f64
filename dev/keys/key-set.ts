/** The lifecycle of signing keys: generation and rotation. */
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import {
  activeKey,
  parseSigningKeys,
  publishedKeys,
  type SigningAlgorithm,
  type SigningJwk,
  type SigningKeyState,
  signingKeyState,
} from '../../src/access/tokens/signing-keys.ts'

export const DEFAULT_SIGNING_ALGORITHM: SigningAlgorithm = 'ES256'

/**
 * Time between the rotation and the first use of the new key: 5 minutes for the deployment, and 5
 * for cached copies of `/.well-known/jwks.json`.
 */
const PUBLISHED_BEFORE_USE_SECONDS = 600
/**
 * How long the previous keys verify afterwards: the maximum lifetime of an access token, and 5
 * minutes.
 */
const VERIFIED_AFTER_USE_SECONDS = 3_600 + 300

/** Generates a private key (RSA with 2048 bits). Its `kid` is its thumbprint (RFC 7638). */
export async function generateSigningKey(alg: SigningAlgorithm): Promise<SigningJwk> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(privateKey)
  const kid = await calculateJwkThumbprint(jwk)
  const [key] = parseSigningKeys({ keys: [{ ...jwk, kid, alg, use: 'sig' }] })
  return key as SigningJwk
}

/**
 * Returns the default algorithm of the next key: that of the active key, or else of the first one,
 * or else {@link DEFAULT_SIGNING_ALGORITHM}.
 */
export function algorithmOfNext(keys: readonly SigningJwk[], nowMs: number): SigningAlgorithm {
  return (activeKey(keys, nowMs) ?? keys[0])?.alg ?? DEFAULT_SIGNING_ALGORITHM
}

/**
 * Returns the key set after a rotation. `fresh` is the first key and signs in 10 minutes. The keys
 * that it replaces verify for 65 more minutes after that. Expired keys are removed. `fresh`
 * replaces the keys of its own algorithm or, if each of those has an expiry already, all keys.
 * Therefore a set may have one sequence of keys for each algorithm.
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

/** Public facts about a key. */
export interface KeyFacts {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly state: SigningKeyState
  /** RFC 3339, UTC; absent for a key that may sign at once. */
  readonly notBefore?: string
  /** RFC 3339, UTC; absent for a key that does not expire. */
  readonly expiresAt?: string
}

/** Returns the public facts about each key, in the order of the set. */
export function factsOf(keys: readonly SigningJwk[], nowMs: number): readonly KeyFacts[] {
  return keys.map((key) => ({
    kid: key.kid,
    alg: key.alg,
    state: signingKeyState(key, keys, nowMs),
    ...(key.nbf !== undefined && { notBefore: timeOf(key.nbf) }),
    ...(key.exp !== undefined && { expiresAt: timeOf(key.exp) }),
  }))
}

/** Formats whole seconds since the epoch as RFC 3339. */
function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
