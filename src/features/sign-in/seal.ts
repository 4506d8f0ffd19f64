/** Encrypts the tokens of the provider, which a session keeps in the store. */
import { base64url } from 'jose'

const IV_BYTES = 12
/** Separates this use of the secret from all others. */
const INFO = 'portcullis: tokens of a session'

/**
 * Creates the encryption: AES-256-GCM, with a key that HKDF derives from the secret of the client at
 * the provider. With another secret, the tokens of earlier sessions cannot be read.
 */
export function createSeal(secret: string) {
  const bytes = (text: string) => new TextEncoder().encode(text)

  async function key(): Promise<CryptoKey> {
    const raw = await crypto.subtle.importKey('raw', bytes(secret), 'HKDF', false, ['deriveKey'])
    const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: bytes(INFO) }
    const aes = { name: 'AES-GCM', length: 256 }
    return crypto.subtle.deriveKey(hkdf, raw, aes, false, ['encrypt', 'decrypt'])
  }

  return {
    async close(text: string, sessionId: string): Promise<string> {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES))
      const aes = { name: 'AES-GCM', iv, additionalData: bytes(sessionId) }
      const encrypted = await crypto.subtle.encrypt(aes, await key(), bytes(text))
      return `${base64url.encode(iv)}.${base64url.encode(new Uint8Array(encrypted))}`
    },
    /** Undefined for a text that was not encrypted with this secret, or for another session. */
    async open(sealed: string, sessionId: string): Promise<string | undefined> {
      try {
        const [iv, encrypted] = sealed.split('.').map((part) => base64url.decode(part).slice())
        if (iv === undefined || encrypted === undefined) return undefined
        const aes = { name: 'AES-GCM', iv, additionalData: bytes(sessionId) }
        return new TextDecoder().decode(await crypto.subtle.decrypt(aes, await key(), encrypted))
      } catch {
        return undefined
      }
    },
  }
}
