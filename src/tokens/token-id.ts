/** What a token is called where it must not be told. */
import { sha256 } from './sha256.ts'

/**
 * The identity of a token in revocation, caches and audit: base64url of SHA-256 over
 * `JSON.stringify([iss, jti])`. The same for every spelling of the token, different for every
 * issuer, of fixed length, and free of characters that mean something in a Redis key.
 */
export function tokenIdHash(issuer: string, tokenId: string): Promise<string> {
  return sha256(JSON.stringify([issuer, tokenId]))
}
