/** What the audit trail has of a received event. It does not contain the subject. */
import type { Reception } from './receiver.ts'

/** Returns the fields of an audit event. Texts may be longer than its fields. */
export function eventFields({ transmitter, id, events }: Reception): Record<string, string> {
  return {
    'signals.transmitter': transmitter,
    'signals.id': id,
    'signals.type': events.map(({ type }) => type).join(' '),
    'signals.action': events.map(({ action }) => action ?? 'none').join(' '),
    'signals.outcome': events.map(({ outcome }) => outcome).join(' '),
  }
}
