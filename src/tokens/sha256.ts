/** SHA-256, as the gateway writes it everywhere. */
import { base64url } from 'jose'

/** base64url SHA-256 of a text's UTF-8: 43 characters, none of which means anything in a Redis key. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return base64url.encode(new Uint8Array(digest))
}
