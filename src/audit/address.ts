/** Truncated and hashed client addresses for the audit trail. */
import { base64url } from 'jose'
import { LRUCache } from 'lru-cache'
import type { AuditAddresses } from '../validators/variables.ts'
import type { AuditEvent, AuditSink } from './event.ts'

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

/** Replaces a missing address. All clients share it, so it identifies no client. */
const UNKNOWN = 'unknown'

/** Matches the target of an operator's change to the limits of one address (`limit:address`). */
const TARGET = /^([^:]+:)((?:\d{1,3}\.){3}\d{1,3}|[\da-f:]+::\/64)$/

/**
 * Returns the event with other addresses. `addresses` has one for each address from {@link addressesIn}.
 */
function withAddresses(event: AuditEvent, addresses: readonly string[]): AuditEvent {
  const [address = UNKNOWN, named] = addresses
  const { change } = event
  if (change === undefined || named === undefined) return { ...event, address }
  return {
    ...event,
    address,
    change: { ...change, target: change.target.replace(TARGET, `$1${named}`) },
  }
}

/** Returns the client's address, and the address in an operator's change if there is one. */
function addressesIn({ address, change }: AuditEvent): readonly string[] {
  const named = change && TARGET.exec(change.target)?.[2]
  return named === undefined ? [address] : [address, named]
}

/**
 * Returns a sink in front of `sink`, for one isolate. With the form `full` it returns `sink`
 * itself. Only the addresses in an event change.
 *
 * If the isolate has no cached hash for an address, it computes the hash after the response, in
 * `waitUntil`. Such an event is recorded a moment later. If the hash cannot be computed, the
 * addresses in the event are `unknown`.
 */
export function addressSink(sink: AuditSink, { form, key }: AuditAddresses): AuditSink {
  if (form === 'full') return sink
  if (form === 'truncated') {
    return {
      record(event, waitUntil) {
        const addresses =
          event.change === undefined
            ? { ...event, address: truncatedAddress(event.address) }
            : withAddresses(event, addressesIn(event).map(truncatedAddress))
        sink.record(addresses, waitUntil)
      },
    }
  }
  const hashes = createAddressHashes(key)

  const hashOf = (address: string) =>
    address === UNKNOWN ? UNKNOWN : (hashes.known(address) ?? hashes.make(address))

  async function recordLater(event: AuditEvent, waitUntil: (promise: Promise<unknown>) => void) {
    const made = await Promise.all(addressesIn(event).map(hashOf)).catch(() => [UNKNOWN, UNKNOWN])
    sink.record(withAddresses(event, made), waitUntil)
  }

  return {
    record(event, waitUntil) {
      const hash = event.address === UNKNOWN ? UNKNOWN : hashes.known(event.address)
      if (hash === undefined || event.change !== undefined) waitUntil(recordLater(event, waitUntil))
      else sink.record({ ...event, address: hash }, waitUntil)
    },
  }
}
