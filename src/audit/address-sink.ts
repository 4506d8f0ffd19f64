/** An audit sink that never tells another one a client's whole address. */
import type { AuditAddresses } from '../validators/audit-address.ts'
import { createAddressHashes, truncatedAddress } from './address.ts'
import type { AuditEvent, AuditSink } from './event.ts'

/** What stands for no address: everybody's, so it says nothing about anybody. */
const UNKNOWN = 'unknown'

/** What an operator names in an order about one address (`limit:address`). */
const TARGET = /^([^:]+:)((?:\d{1,3}\.){3}\d{1,3}|[\da-f:]+::\/64)$/

/** The event with other addresses; `told` has one for each that {@link addressesIn} finds. */
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

/** The client's, and where an operator has named another, that. */
function addressesIn({ address, change }: AuditEvent): readonly string[] {
  const named = change && TARGET.exec(change.target)?.[2]
  return named === undefined ? [address] : [address, named]
}

/**
 * A sink in front of `sink`, for one isolate: `full` is `sink` itself. Events keep everything but
 * their addresses. A hash that the isolate does not know yet is made behind the answer, in
 * `waitUntil`; whose event that is arrives a moment later, and where no hash can be made, its
 * addresses are `unknown`.
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
