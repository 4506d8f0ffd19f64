/** Identifies tokens without revealing them. */
import { sha256 } from '../crypto/sha256.ts'

/**
 * Returns the identity of a token in revocation, caches and audit: base64url of SHA-256 over
 * `JSON.stringify([iss, jti])`. It is the same for every encoding of the token, differs between
 * issuers, has a fixed length, and contains no special characters of Redis keys.
 */
export function tokenIdHash(issuer: string, tokenId: string): Promise<string> {
  return sha256(JSON.stringify([issuer, tokenId]))
}
