/** An audit sink that shortens or hashes the client addresses of events. */
import type { AuditAddresses } from '../validators/variables.ts'
import { createAddressHashes, truncatedAddress } from './address.ts'
import type { AuditEvent, AuditSink } from './event.ts'

/** Replaces a missing address. All clients share it, so it identifies no client. */
const UNKNOWN = 'unknown'

/** Matches the target of an operator's change to the limits of one address (`limit:address`). */
const TARGET = /^([^:]+:)((?:\d{1,3}\.){3}\d{1,3}|[\da-f:]+::\/64)$/

/**
 * Returns the event with other addresses. `told` has one for each address from {@link addressesIn}.
 */
function withAddresses(event: AuditEvent, told: readonly string[]): AuditEvent {
  const [address = UNKNOWN, named] = told
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
        const told =
          event.change === undefined
            ? { ...event, address: truncatedAddress(event.address) }
            : withAddresses(event, addressesIn(event).map(truncatedAddress))
        sink.record(told, waitUntil)
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
