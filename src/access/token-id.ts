/** Identifies tokens without revealing them. */
import { sha256 } from '../crypto/sha256.ts'

/**
 * Returns the identity of a token in revocation, caches and audit. It is the same for every encoding
 * of the token, differs between issuers, and contains no special characters of Redis keys.
 */
export function tokenIdHash(issuer: string, tokenId: string): Promise<string> {
  return sha256(JSON.stringify([issuer, tokenId]))
}
