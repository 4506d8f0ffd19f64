/** The gateway's own keys, ready to sign. */
import { importJWK } from 'jose'
import { Misconfigured } from '../errors.ts'
import {
  publicJwk,
  type SigningAlgorithm,
  type SigningJwk,
  signingKeys,
} from '../validators/signing-jwk.ts'

export type { SigningAlgorithm, SigningJwk }

/** A private key, imported: it signs, and cannot be exported. */
export interface SigningKey {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly privateKey: CryptoKey
}

/**
 * Parses a private JWK Set as `SIGNING_KEYS` has it; `parseConfig` has done so already for the
 * environment's. Throws `Misconfigured`, which repeats no member of a key.
 */
export function parseSigningKeys(jwks: unknown): SigningJwk[] {
  const parsed = signingKeys.safeParse(jwks)
  if (parsed.success) return parsed.data.keys
  throw new Misconfigured(
    'The signing keys',
    parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`),
  )
}

/**
 * The key that signs at `nowMs`, with `algorithm` if one is asked for: the first whose `nbf` has
 * passed and whose `exp` has not. Undefined if there is none. Every gateway with the same keys
 * gives the same answer at the same time, so keys change by the clock and not by a deployment.
 */
export function activeKey(
  keys: readonly SigningJwk[],
  nowMs: number,
  algorithm?: SigningAlgorithm,
): SigningJwk | undefined {
  return keys.find(
    (key) =>
      (key.nbf ?? 0) * 1000 <= nowMs &&
      !isExpired(key, nowMs) &&
      (algorithm === undefined || key.alg === algorithm),
  )
}

/** Keys to publish at `nowMs`: all that have not expired, also those that do not sign yet. */
export function publishedKeys(keys: readonly SigningJwk[], nowMs: number): readonly SigningJwk[] {
  return keys.filter((key) => !isExpired(key, nowMs))
}

/** Where a key is in its life: before it signs, while it does, while it only verifies, after. */
export type SigningKeyState = 'next' | 'active' | 'retiring' | 'expired'

/** The state of one of `keys`. `active` are the first of each algorithm: those that can sign. */
export function signingKeyState(
  key: SigningJwk,
  keys: readonly SigningJwk[],
  nowMs: number,
): SigningKeyState {
  if (isExpired(key, nowMs)) return 'expired'
  if ((key.nbf ?? 0) * 1000 > nowMs) return 'next'
  return activeKey(keys, nowMs, key.alg) === key ? 'active' : 'retiring'
}

function isExpired({ exp }: SigningJwk, nowMs: number): boolean {
  return exp !== undefined && nowMs >= exp * 1000
}

/** The JWK Set of these keys for anybody (RFC 7517 section 5): never a private member. */
export function publicKeySet(keys: readonly SigningJwk[]) {
  return { keys: keys.map(publicJwk) }
}

const imported = new WeakMap<SigningJwk, SigningKey>()

/**
 * Imports a private key, once for the same object. Throws `Misconfigured` if it cannot be imported,
 * or if what it signs is not good for its public half: such a gateway would issue tokens that it
 * refuses itself.
 */
export async function importSigningKey(jwk: SigningJwk): Promise<SigningKey> {
  const known = imported.get(jwk)
  if (known !== undefined) return known
  const key = await importPair(jwk)
  imported.set(jwk, key)
  return key
}

async function importPair(jwk: SigningJwk): Promise<SigningKey> {
  const { kid, alg } = jwk
  const { key_ops: _operations, use: _use, ...members } = jwk
  try {
    const privateKey = (await importJWK(members, alg)) as CryptoKey
    const publicKey = (await importJWK(publicJwk(jwk), alg)) as CryptoKey
    const parameters = { name: privateKey.algorithm.name, hash: 'SHA-256' }
    const probe = new TextEncoder().encode(kid)
    const signature = await crypto.subtle.sign(parameters, privateKey, probe)
    if (await crypto.subtle.verify(parameters, publicKey, signature, probe)) {
      return { kid, alg, privateKey }
    }
  } catch {
    // Without the cause: an engine's message may quote the key.
  }
  throw new Misconfigured('SIGNING_KEYS', [`${kid}: is not a key pair`])
}
