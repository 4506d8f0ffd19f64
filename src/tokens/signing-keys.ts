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

/** The JWK Set to publish (RFC 7517 section 5): never a private member. */
export function publicKeySet(keys: readonly SigningJwk[]) {
  return { keys: keys.map(publicJwk) }
}

/**
 * Imports a private key. Throws `Misconfigured` if it cannot be imported, or if what it signs is
 * not good for its public half: such a gateway would issue tokens that it refuses itself.
 */
export async function importSigningKey(jwk: SigningJwk): Promise<SigningKey> {
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
