/**
 * Imports keys of signatures. `importJWK` of jose would also bring the algorithms of encryption into each bundle, and
 * the forms of keys that no schema here accepts.
 */
import type { Algorithm } from '../../validators/jwk.ts'

/** RFC 7518 section 3.4. Other algorithms have no curve, or one only. */
const CURVES: Partial<Record<Algorithm, string>> = {
  ES256: 'P-256',
  ES384: 'P-384',
  ES512: 'P-521',
}

/** Returns how Web Crypto names the keys of an algorithm. */
export function keyParameters(algorithm: Algorithm): SubtleCryptoImportKeyAlgorithm {
  const hash = `SHA-${algorithm.slice(2)}`
  switch (algorithm.slice(0, 2)) {
    case 'RS':
      return { name: 'RSASSA-PKCS1-v1_5', hash }
    case 'PS':
      return { name: 'RSA-PSS', hash }
    case 'ES':
      return { name: 'ECDSA', namedCurve: CURVES[algorithm] as string }
    case 'HS':
      return { name: 'HMAC', hash }
    default:
      return { name: 'Ed25519' }
  }
}

/**
 * Imports a JWK for one algorithm (RFC 7518, RFC 8037): a private key to sign, another to verify. The key cannot be
 * exported. Throws for a key of another type or curve, and for numbers that are no key.
 */
export async function importKey(
  { alg: _algorithm, use: _use, ...jwk }: JsonWebKey,
  algorithm: Algorithm,
): Promise<CryptoKey> {
  const usage = jwk.d === undefined ? 'verify' : 'sign'
  return crypto.subtle.importKey('jwk', jwk, keyParameters(algorithm), false, [usage])
}
