/** Ids of requests and records. Random bytes are drawn for hundreds of requests at once. */

/** Each draw is a call into the platform, which takes ten times as long as an id. */
const POOL_BYTES = 4_096
const pool = new Uint8Array(POOL_BYTES)
let used = POOL_BYTES

/** Returns where `count` (1 to 4,096) unused bytes begin in the pool. */
function draw(count: number): number {
  if (used + count > POOL_BYTES) {
    crypto.getRandomValues(pool)
    used = 0
  }
  const start = used
  used += count
  return start
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Returns `count` (1 to 4,096) unpredictable bytes as lower-case hex. Never reuses a byte. */
export function randomHex(count: number): string {
  let text = ''
  const start = draw(count)
  for (let at = start; at < start + count; at++) text += HEX[pool[at] ?? 0]
  return text
}

let lastMs = Number.NaN
/** The part of a UUIDv7 that is the time. Ids of one millisecond share it. */
let timeText = ''

/** Returns a UUIDv7 for `nowMs` (RFC 9562 section 5.7). Ids of one millisecond are not ordered. */
export function uuidV7(nowMs: number): string {
  if (nowMs !== lastMs) {
    lastMs = nowMs
    const time = nowMs.toString(16).padStart(12, '0')
    timeText = `${time.slice(0, 8)}-${time.slice(8)}-7`
  }
  const random = randomHex(9)
  const variant = '89ab'[(pool[draw(1)] ?? 0) % 4]
  return `${timeText}${random.slice(0, 3)}-${variant}${random.slice(3, 6)}-${random.slice(6)}`
}

let lastRecordMs = 0

/**
 * Returns a UUIDv7 for a record that is created now. The ids of an isolate ascend: a second id in the same millisecond
 * has the time of the next millisecond.
 */
export function recordId(): string {
  lastRecordMs = Math.max(Date.now(), lastRecordMs + 1)
  return uuidV7(lastRecordMs)
}

/** Returns the UUIDv4 with the bits of 16 bytes (RFC 9562 section 5.4). */
export function uuidV4(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => HEX[byte]).join('')
  const variant = '89ab'[((bytes[8] ?? 0) >> 4) % 4]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`
}
