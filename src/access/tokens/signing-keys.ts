/** The gateway's own signing keys: parsing, selection, publication and import. */
import { type CryptoKey, importJWK } from 'jose'
import { Misconfigured } from '../../errors.ts'
import { inEnglish } from '../../validators/english.ts'
import {
  publicJwk,
  type SigningAlgorithm,
  type SigningJwk,
  signingKeys,
} from '../../validators/signing-jwk.ts'

export type { SigningAlgorithm, SigningJwk }

/** An imported private key. It cannot be exported. */
export interface SigningKey {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly privateKey: CryptoKey
}

/** Parses a private JWK Set. Throws `Misconfigured`, which contains no member of a key. */
export function parseSigningKeys(jwks: unknown): SigningJwk[] {
  const parsed = signingKeys.safeParse(jwks, inEnglish())
  if (parsed.success) return parsed.data.keys
  throw new Misconfigured(
    'The signing keys',
    parsed.error.issues.map(({ path, message }) => ({
      code: 'invalid_value',
      path: path.map((part) => (typeof part === 'number' ? part : String(part))),
      message,
    })),
  )
}

/**
 * Returns the key that signs at `nowMs`: the first one after its `nbf` and before its `exp`. Every
 * gateway with the same keys selects the same key at the same time. Keys therefore change by the
 * clock, not by a deployment.
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

/** Imports the {@link activeKey}. Throws `Misconfigured` if there is none, or if it cannot sign. */
export async function activeSigningKey(
  keys: readonly SigningJwk[],
  nowMs: number,
  algorithm?: SigningAlgorithm,
): Promise<SigningKey> {
  const jwk = activeKey(keys, nowMs, algorithm)
  if (jwk !== undefined) return importSigningKey(jwk)
  const what = algorithm === undefined ? 'no key signs now' : `no key signs with ${algorithm} now`
  throw new Misconfigured('SIGNING_KEYS', [what])
}

/** Returns the keys to publish: all that have not expired, also those that do not sign yet. */
export function publishedKeys(keys: readonly SigningJwk[], nowMs: number): readonly SigningJwk[] {
  return keys.filter((key) => !isExpired(key, nowMs))
}

/** Before it signs, while it signs, while it only verifies, after its expiry. */
export type SigningKeyState = 'next' | 'active' | 'retiring' | 'expired'

/** Returns the state of one of `keys`. For each algorithm, the first valid key is `active`. */
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

/** Returns the public JWK Set of these keys (RFC 7517 section 5). */
export function publicKeySet(keys: readonly SigningJwk[]) {
  return { keys: keys.map(publicJwk) }
}

const imported = new WeakMap<SigningJwk, SigningKey>()

/**
 * Imports a private key, once for the same object. Throws `Misconfigured` if its signatures do not
 * verify with its public half: the gateway would refuse its own tokens. `variable` is named in the mistake.
 */
export async function importSigningKey(
  jwk: SigningJwk,
  variable = 'SIGNING_KEYS',
): Promise<SigningKey> {
  const key = imported.get(jwk) ?? (await importPair(jwk, variable))
  imported.set(jwk, key)
  return key
}

async function importPair(jwk: SigningJwk, variable: string): Promise<SigningKey> {
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
    // The cause is dropped, because the message of an engine may quote the key.
  }
  throw new Misconfigured(variable, [`${kid}: is not a key pair`])
}
