/** An audit sink that never tells another one a client's whole address. */
import type { AuditAddresses } from '../validators/audit-address.ts'
import { createAddressHashes, truncatedAddress } from './address.ts'
import type { AuditEvent, AuditSink } from './event.ts'

/** What stands for no address: everybody's, so it says nothing about anybody. */
const UNKNOWN = 'unknown'

/**
 * A sink in front of `sink`, for one isolate: `full` is `sink` itself. Events keep everything but
 * their address. A hash that the isolate does not know yet is made behind the answer, in
 * `waitUntil`; whose event that is arrives a moment later, and where no hash can be made, its
 * address is `unknown`.
 */
export function addressSink(sink: AuditSink, { form, key }: AuditAddresses): AuditSink {
  if (form === 'full') return sink
  if (form === 'truncated') {
    return {
      record(event, waitUntil) {
        sink.record({ ...event, address: truncatedAddress(event.address) }, waitUntil)
      },
    }
  }
  const hashes = createAddressHashes(key)

  async function recordLater(event: AuditEvent, waitUntil: (promise: Promise<unknown>) => void) {
    const hash = await hashes.make(event.address).catch(() => UNKNOWN)
    sink.record({ ...event, address: hash }, waitUntil)
  }

  return {
    record(event, waitUntil) {
      if (event.address === UNKNOWN) return sink.record(event, waitUntil)
      const hash = hashes.known(event.address)
      if (hash === undefined) waitUntil(recordLater(event, waitUntil))
      else sink.record({ ...event, address: hash }, waitUntil)
    },
  }
}
