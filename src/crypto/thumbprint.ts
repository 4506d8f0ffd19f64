import { sha256 } from './sha256.ts'

/** The members that define a public key, by its type, in lexicographic order (RFC 7638 section 3.2, RFC 8037 section 2). */
const MEMBERS: Readonly<Record<string, string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
}

/**
 * Returns the base64url SHA-256 thumbprint of a public key (RFC 7638). Does NOT check the key: its import does.
 * Throws `TypeError` for another type of key.
 */
export async function thumbprintOf(jwk: { readonly kty: string }): Promise<string> {
  if (!Object.hasOwn(MEMBERS, jwk.kty)) throw new TypeError('unknown kty')
  return sha256(JSON.stringify(jwk, MEMBERS[jwk.kty]))
}
