/**
 * What searches read of a block beside its events: times, ids, a filter, and the requests of API keys. They
 * follow from the events, so that a verification can compute them again. Pure: no I/O, no clock.
 */
import { type Digest, sha256 } from '../../crypto/sha256.ts'
import type { CountedEvent } from '../event.ts'
import { STREAM_ENDED } from '../reason.ts'
import { timeMs } from '../time-of-event.ts'
import { filterOf } from './terms.ts'

export type SearchColumns = ReturnType<typeof searchColumnsOf>

/** Requests of an API key in a block with the same day, outcome and route. A row of `audit_usage`. */
export interface UsageCount {
  readonly api_key: string
  readonly min_ms: number
  readonly max_ms: number
  /** Since the epoch. */
  readonly day: number
  readonly decision: string
  readonly reason: string
  readonly method: string
  readonly route: string | null
  readonly host: string | null
  readonly requests: number
}

const BYTES_PER_ID = 16
const DAY_MS = 86_400_000

export function searchColumnsOf(events: readonly CountedEvent[]) {
  const times = events.map(({ time }) => timeMs(time))
  const ids = events.flatMap(({ requestId }) => (requestId === '' ? [] : requestId))
  const max_ms = Math.max(...times)
  return {
    min_ms: Math.min(...times),
    max_ms,
    /** When the earliest request of the events began; `max_ms` if no event has the id of its request. */
    start_ms: Math.min(max_ms, ...ids.map((id) => requestStart(id) || 0)),
    /** A Bloom filter; see {@link filterOf}. */
    terms: filterOf(events),
    /** 16 bytes for each event. */
    ids: idsOf(events),
    usage: usageOf(events),
  }
}

/** Leading characters of a UUIDv7 that encode milliseconds since the epoch, with the hyphen. */
const UUID_TIME = /^([\da-f]{8})-([\da-f]{4})-/i

/** Returns the milliseconds since the epoch that a request id contains (RFC 9562 section 5.7); otherwise `NaN`. */
export function requestStart(requestId: string): number {
  const [, high = '', low = ''] = UUID_TIME.exec(requestId) ?? []
  return Number.parseInt(high + low, 16)
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * Returns a digest of the columns as a database has them, whatever the order of the counts. It does not
 * cover `start_ms`, which blocks of before do not have.
 */
export async function searchDigest(
  { min_ms, max_ms, terms, ids, usage }: Omit<SearchColumns, 'start_ms'>,
  digest: Digest = sha256,
): Promise<string> {
  const counts = usage.map((one) => JSON.stringify(USAGE_NAMES.map((name) => one[name]))).sort()
  const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => HEX[byte]).join('')
  return digest([min_ms, max_ms, hex(terms), hex(ids), ...counts].join('\n'))
}

/** The columns of a count, in the order of the table. */
export const USAGE_NAMES = [
  ...(['api_key', 'min_ms', 'max_ms', 'day', 'decision', 'reason'] as const),
  ...(['method', 'route', 'host', 'requests'] as const),
]

/** Bytes before which a UUID has a hyphen. */
const HYPHENS = new Set([4, 6, 8, 10])

/** The values of hexadecimal digits by the codes of their characters. 255: no digit. */
const DIGITS = new Uint8Array(128).fill(255)
for (const digit of '0123456789abcdefABCDEF')
  DIGITS[digit.charCodeAt(0)] = Number.parseInt(digit, 16)
/** The places of the first digit of each byte in a UUID, and those of its hyphens. */
const UUID_BYTES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const UUID_CHARACTERS = 36

/** Returns the ids that {@link SearchColumns.ids} contains. */
export function idsIn(bytes: Uint8Array): readonly string[] {
  const ids: string[] = []
  for (let start = 0; start < bytes.length; start += BYTES_PER_ID) {
    let text = ''
    for (let at = 0; at < BYTES_PER_ID; at += 1)
      text += (HYPHENS.has(at) ? '-' : '') + HEX[bytes[start + at] ?? 0]
    ids.push(text)
  }
  return ids
}

function idsOf(events: readonly CountedEvent[]): Uint8Array {
  const bytes = new Uint8Array(events.length * BYTES_PER_ID)
  for (const [index, { id }] of events.entries())
    if (!writeUuid(id, bytes, index * BYTES_PER_ID)) writeOther(id, bytes, index * BYTES_PER_ID)
  return bytes
}

/** Returns false if the id has another form, or another character where a UUID has a digit. */
function writeUuid(id: string, bytes: Uint8Array, start: number): boolean {
  if (id.length !== UUID_CHARACTERS) return false
  let all = 0
  for (let index = 0; index < BYTES_PER_ID; index += 1) {
    const at = UUID_BYTES[index] ?? 0
    const high = DIGITS[id.charCodeAt(at)] ?? 255
    const low = DIGITS[id.charCodeAt(at + 1)] ?? 255
    all |= high | low
    bytes[start + index] = (high << 4) | low
  }
  return all < 16
}

/** An id that is no UUID has the same place, and the bytes that `Number.parseInt` reads. */
function writeOther(id: string, bytes: Uint8Array, start: number): void {
  const digits = id.replaceAll('-', '').slice(0, 2 * BYTES_PER_ID)
  bytes.fill(0, start, start + BYTES_PER_ID)
  for (let at = 0; at < digits.length; at += 2)
    bytes[start + at / 2] = Number.parseInt(digits.slice(at, at + 2), 16)
}

/** Counts the requests of each API key. */
function usageOf(events: readonly CountedEvent[]): readonly UsageCount[] {
  const counts = new Map<string, UsageCount>()
  for (const { actor, time, decision, reason, method, route, host = null } of events) {
    // An ended stream has a second event. Its request is counted by the first one.
    if (actor.key === undefined || reason.startsWith(STREAM_ENDED)) continue
    const ms = timeMs(time)
    const what = {
      ...{ api_key: actor.key, day: Math.floor(ms / DAY_MS), decision, reason },
      ...{ method, route, host },
    }
    const place = JSON.stringify(Object.values(what))
    const { min_ms, max_ms, requests } = counts.get(place) ?? {
      min_ms: ms,
      max_ms: ms,
      requests: 0,
    }
    const times = { min_ms: Math.min(min_ms, ms), max_ms: Math.max(max_ms, ms) }
    counts.set(place, { ...what, ...times, requests: requests + 1 })
  }
  return [...counts.values()]
}
