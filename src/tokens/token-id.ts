/** What a token is called where it must not be told. */
import { base64url } from 'jose'

/**
 * The identity of a token in revocation, caches and audit: base64url of SHA-256 over
 * `JSON.stringify([iss, jti])`. The same for every spelling of the token, different for every
 * issuer, of fixed length, and free of characters that mean something in a Redis key.
 */
export async function tokenIdHash(issuer: string, tokenId: string): Promise<string> {
  const identity = new TextEncoder().encode(JSON.stringify([issuer, tokenId]))
  return base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', identity)))
}
