/** How much of a client's address the audit trail gets to know. */
import { base64url } from 'jose'
import { LRUCache } from 'lru-cache'

/** A hash takes 20 µs and a promise; who comes once often comes again. */
const MAX_REMEMBERED = 10_000
/** Tells a hash from an address. */
const HASH_PREFIX = 'h:'

/**
 * An address as limits see it, without its end: IPv4 as its /24 (`192.0.2.0/24`), IPv6, which is a
 * /64 there, as its /48 (`2001:db8:1::/48`). Everything else, such as `unknown`, as it is.
 */
export function truncatedAddress(address: string): string {
  const group = address.lastIndexOf('::/64')
  if (group !== -1) return `${address.slice(0, address.lastIndexOf(':', group - 1))}::/48`
  const dot = address.lastIndexOf('.')
  return dot === -1 || address.includes('/') ? address : `${address.slice(0, dot)}.0/24`
}

/** Hashes of addresses, for one isolate. */
export interface AddressHashes {
  /** Undefined: it has to be made. */
  known(address: string): string | undefined
  /** `h:` and the base64url HMAC-SHA-256 of the address (RFC 2104): the same for the same key. */
  make(address: string): Promise<string>
}

/** With the UTF-8 of `key`. The key is imported with the first address. */
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
