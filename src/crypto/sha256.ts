/** SHA-256 and HMAC-SHA-256 of texts. */
import { base64url } from 'jose'

/** Computes the base64url SHA-256 of a text's UTF-8. Node has one that needs no promise. */
export type Digest = (text: string) => string | Promise<string>

/** Returns the base64url SHA-256 of a text's UTF-8: 43 characters, none special in Redis keys. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return base64url.encode(new Uint8Array(digest))
}

/** Imports a key and returns a function that computes the HMAC-SHA-256 of a text's UTF-8. */
export async function hmacSha256(bytes: Uint8Array) {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', bytes.slice(), algorithm, false, ['sign'])
  return async (text: string): Promise<Uint8Array<ArrayBuffer>> =>
    new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(text)))
}

/**
 * Derives a key for HMAC-SHA-256 from a secret (HKDF, RFC 5869). `purpose` separates this use of the
 * secret from every other one (section 3.2).
 */
export async function derivedHmacKey(secret: string, purpose: string): Promise<CryptoKey> {
  const encoder = new TextEncoder()
  const material = await crypto.subtle.importKey('raw', encoder.encode(secret), 'HKDF', false, [
    'deriveKey',
  ])
  const info = encoder.encode(purpose)
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  const hmac = { name: 'HMAC', hash: 'SHA-256', length: 256 }
  return crypto.subtle.deriveKey(hkdf, material, hmac, false, ['sign', 'verify'])
}
