/** Truncated and hashed client addresses for the audit trail. */
import { base64url } from 'jose'
import { LRUCache } from 'lru-cache'

/**
 * Maximum number of cached hashes. A hash takes 20 µs and a promise, and most clients send several
 * requests.
 */
const MAX_REMEMBERED = 10_000
/** Distinguishes a hash from an address. */
const HASH_PREFIX = 'h:'

/**
 * Truncates an address in the form that limits use. IPv4 becomes its /24 (`192.0.2.0/24`). IPv6,
 * which limits use as a /64, becomes its /48 (`2001:db8:1::/48`). Returns any other text, such as
 * `unknown`, unchanged.
 */
export function truncatedAddress(address: string): string {
  const group = address.lastIndexOf('::/64')
  if (group !== -1) return `${address.slice(0, address.lastIndexOf(':', group - 1))}::/48`
  const dot = address.lastIndexOf('.')
  return dot === -1 || address.includes('/') ? address : `${address.slice(0, dot)}.0/24`
}

/** Computes and caches hashes of addresses, for one isolate. */
export interface AddressHashes {
  /** Returns the cached hash; undefined on a miss. */
  known(address: string): string | undefined
  /**
   * Computes `h:` and the base64url HMAC-SHA-256 of the address (RFC 2104). The same key gives the
   * same hash.
   */
  make(address: string): Promise<string>
}

/**
 * Creates the hashes with the UTF-8 bytes of `key` as the HMAC key. Imports the key with the first
 * address.
 */
export function createAddressHashes(key: string): AddressHashes {
  const hashes = new LRUCache<string, string>({ max: MAX_REMEMBERED })
  const encoder = new TextEncoder()
  let imported: CryptoKey | undefined

  return {
    known: (address) => hashes.get(address),
    async make(address) {
      const algorithm = { name: 'HMAC', hash: 'SHA-256' }
      imported ??= await crypto.subtle.importKey('raw', encoder.encode(key), algorithm, false, [
        'sign',
      ])
      const mac = await crypto.subtle.sign('HMAC', imported, encoder.encode(address))
      const hash = HASH_PREFIX + base64url.encode(new Uint8Array(mac))
      hashes.set(address, hash)
      return hash
    },
  }
}
