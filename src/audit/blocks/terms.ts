/**
 * A Bloom filter of what the events of a block are searched by. It never misses an event. A block without
 * the term is read in one of a thousand cases.
 */
import type { CountedEvent } from '../event.ts'

/** For one false answer in a thousand. */
const BITS_PER_TERM = 15
const PROBES = 6
const MIN_BYTES = 32

type Field = 'subject' | 'client' | 'tenant' | 'address' | 'status' | 'decision' | 'route'
type Other = 'host' | 'origin' | 'key' | 'reason' | 'observed' | 'tool' | 'change' | 'requestId'

export const term = (field: Field | Other, value: string | number): string => `${field}\0${value}`

/** Returns the part before the colon, or before the dot. */
const beginning = (text: string, separator: string): string => {
  const at = text.indexOf(separator)
  return at === -1 ? text : text.slice(0, at)
}

type Name = Field | Other

/** The values of each field. Most events of a block share them, so their terms are formed once. */
type Values = Map<Name, Set<string>>

/** Adds the values of an event. Those of an erased part are not in the event any more. */
function addValues(
  event: CountedEvent,
  add: (field: Name, value: string | null | undefined) => void,
) {
  const { actor, call, change } = event
  const addReason = (field: 'reason' | 'observed', reason: string) => {
    add(field, reason)
    add(field, beginning(reason, ':'))
  }
  add('subject', actor.subject)
  add('client', actor.client)
  add('tenant', actor.tenant)
  add('key', actor.key)
  add('address', event.address)
  add('status', String(event.status))
  add('decision', event.decision)
  add('route', event.route)
  add('host', event.host)
  add('origin', event.origin)
  add('requestId', event.requestId)
  add('tool', call?.name)
  addReason('reason', event.reason)
  for (const reason of event.observed ?? []) addReason('observed', reason)
  add('change', change?.action)
  add('change', change && beginning(change.action, '.'))
}

export function filterOf(events: readonly CountedEvent[]): Uint8Array {
  const fields: Values = new Map()
  const add = (field: Name, value: string | null | undefined) => {
    if (value === null || value === undefined) return
    const values = fields.get(field)
    if (values === undefined) fields.set(field, new Set([value]))
    else values.add(value)
  }
  for (const event of events) addValues(event, add)
  let terms = 0
  for (const values of fields.values()) terms += values.size
  const filter = new Uint8Array(Math.max(MIN_BYTES, Math.ceil((terms * BITS_PER_TERM) / 8)))
  for (const [field, values] of fields)
    for (const value of values)
      eachProbe(term(field, value), (probe) => {
        const at = (probe >>> 3) % filter.length
        filter[at] = (filter[at] ?? 0) | (1 << (probe & 7))
      })
  return filter
}

/** Returns the probes of a term; see {@link eachProbe}. */
export function probesOf(text: string): readonly number[] {
  const probes: number[] = []
  eachProbe(text, (probe) => probes.push(probe))
  return probes
}

/**
 * Calls `each` with unsigned integers of 32 bits from two FNV-1a hashes (double hashing). The low three bits of
 * each select a bit of the byte that the others select.
 */
function eachProbe(text: string, each: (probe: number) => void): void {
  let one = 0x811c9dc5
  let other = 0x9747b28c
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    one = Math.imul(one ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x85ebca6b)
    other ^= other >>> 13
  }
  other |= 1
  for (let index = 0; index < PROBES; index += 1) each(mixed(one + index * other))
}

/** Spreads a hash over all bits. */
function mixed(hash: number): number {
  let spread = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  spread = Math.imul(spread ^ (spread >>> 15), 0x846ca68b)
  return (spread ^ (spread >>> 16)) >>> 0
}
