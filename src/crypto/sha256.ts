/** SHA-256 as base64url, the form that the gateway uses everywhere. */
import { base64url } from 'jose'

/**
 * Returns the base64url SHA-256 of a text's UTF-8: 43 characters, none of them special in Redis
 * keys.
 */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return base64url.encode(new Uint8Array(digest))
}
