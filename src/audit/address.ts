/** Truncated and hashed client addresses for the audit trail. */
import { base64url } from 'jose'
import { hmacSha256 } from '../crypto/sha256.ts'
import type { WaitUntil } from '../isolate/after-response.ts'
import { createLruMap } from '../isolate/lru-map.ts'
import type { AuditAddresses } from '../validators/variables.ts'
import type { AuditEvent, AuditSink } from './event.ts'

/** A hash takes 20 µs and a promise, and most clients send several requests. */
const MAX_CACHED_HASHES = 10_000
/** Replaces a missing address. All clients share it, so it identifies no client. */
const UNKNOWN = 'unknown'
/** Matches the target of an operator's change to the limits of one address (`limit:address`). */
const TARGET = /^([^:]+:)((?:\d{1,3}\.){3}\d{1,3}|[\da-f:]+::\/64)$/

/**
 * Truncates an address in the form that limits use. IPv4 becomes its /24 (`192.0.2.0/24`). IPv6,
 * which limits use as a /64, becomes its /48 (`2001:db8:1::/48`). Returns any other text, such as
 * `unknown`, unchanged.
 */
function truncatedAddress(address: string): string {
  const group = address.lastIndexOf('::/64')
  if (group !== -1) return `${address.slice(0, address.lastIndexOf(':', group - 1))}::/48`
  const dot = address.lastIndexOf('.')
  return dot === -1 || address.includes('/') ? address : `${address.slice(0, dot)}.0/24`
}

/**
 * Returns a sink in front of `sink`, for one isolate. With the form `full` it returns `sink`
 * itself. Only the addresses in an event change: the client's, and the one in an operator's change.
 *
 * A hash is `h:` and the base64url HMAC-SHA-256 of the address (RFC 2104), with the UTF-8 bytes of
 * `key` as the key. If the isolate has no cached hash, it computes the hash after the response, in
 * `waitUntil`, and records the event a moment later. If that fails, the address is `unknown`.
 */
export function addressSink(sink: AuditSink, { form, key }: AuditAddresses): AuditSink {
  if (form === 'full') return sink
  if (form === 'truncated') {
    return {
      record: (event, waitUntil) => sink.record(withAddresses(event, truncatedAddress), waitUntil),
    }
  }
  const hashes = createLruMap<string, string>({ max: MAX_CACHED_HASHES })
  let hmac: Awaited<ReturnType<typeof hmacSha256>> | undefined

  const cached = (address: string) => (address === UNKNOWN ? UNKNOWN : hashes.get(address))

  async function hashOf(address: string): Promise<string> {
    hmac ??= await hmacSha256(new TextEncoder().encode(key))
    const hash = `h:${base64url.encode(await hmac(address))}`
    hashes.set(address, hash)
    return hash
  }

  async function recordLater(event: AuditEvent, waitUntil: WaitUntil): Promise<void> {
    const made = new Map<string, string>()
    for (const address of addressesIn(event)) {
      const hash = cached(address) ?? (await hashOf(address).catch(() => UNKNOWN))
      made.set(address, hash)
    }
    await sink.record(
      withAddresses(event, (address) => made.get(address) ?? UNKNOWN),
      waitUntil,
    )
  }

  return {
    record(event, waitUntil) {
      const address = cached(event.address)
      if (address !== undefined && event.change === undefined)
        return sink.record({ ...event, address }, waitUntil)
      const recorded = recordLater(event, waitUntil)
      waitUntil(recorded)
      return recorded
    },
  }
}

function addressesIn({ address, change }: AuditEvent): readonly string[] {
  const named = change && TARGET.exec(change.target)?.[2]
  return named === undefined ? [address] : [address, named]
}

function withAddresses(event: AuditEvent, replace: (address: string) => string): AuditEvent {
  const address = replace(event.address)
  const { change } = event
  if (change === undefined) return { ...event, address }
  const target = change.target.replace(
    TARGET,
    (_, limit: string, named: string) => limit + replace(named),
  )
  return { ...event, address, change: { ...change, target } }
}
