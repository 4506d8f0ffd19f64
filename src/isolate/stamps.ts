/** Ids and timestamps for each request, cheaper than the platform's own functions. */

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Random bytes for some hundred requests, because each draw is a call into the platform. */
const POOL_BYTES = 4_096
const pool = new Uint8Array(POOL_BYTES)
let used = POOL_BYTES

/** Returns `count` (1 to 4,096) unpredictable bytes as lower-case hex. Never reuses a byte. */
export function randomHex(count: number): string {
  if (used + count > POOL_BYTES) {
    crypto.getRandomValues(pool)
    used = 0
  }
  let text = ''
  for (const end = used + count; used < end; used++) text += HEX[pool[used] ?? 0]
  return text
}

const TIME_DIGITS = 12
const TIME_HEAD_DIGITS = 8
/** The beginning of ids of one millisecond, up to the version digit; and that millisecond. */
let millisecond = Number.NaN
let idHead = ''
/**
 * Replacements for the random digit at the variant position: two bits are the variant, two are
 * random.
 */
const VARIANT: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from({ length: 16 }, (_, digit) => [digit.toString(16), '89ab'.charAt(digit % 4)]),
)

/**
 * Returns a lower-case UUIDv7 for `nowMs` (RFC 9562 section 5.7) with 74 random bits. Ids of the
 * same millisecond are not ordered.
 */
export function uuidV7(nowMs: number): string {
  if (nowMs !== millisecond) {
    const time = nowMs.toString(16).padStart(TIME_DIGITS, '0')
    millisecond = nowMs
    idHead = `${time.slice(0, TIME_HEAD_DIGITS)}-${time.slice(TIME_HEAD_DIGITS)}-7`
  }
  const [first, second] = [randomHex(2), randomHex(2)]
  const variant = VARIANT[first.charAt(3)]
  return `${idHead}${first.slice(0, 3)}-${variant}${second.slice(1)}-${randomHex(6)}`
}

const SECOND_MS = 1000
/** The current second, and its text, such as `2026-11-22T12:00:00.`, which many requests share. */
let second = Number.NaN
let secondText = ''

/**
 * Returns the same text as `Date.prototype.toISOString` for `nowMs` (whole milliseconds since the
 * epoch).
 */
export function isoTime(nowMs: number): string {
  const now = Math.floor(nowMs / SECOND_MS)
  if (now !== second) {
    second = now
    secondText = new Date(now * SECOND_MS).toISOString().slice(0, -'000Z'.length)
  }
  return `${secondText}${String(nowMs - now * SECOND_MS).padStart(3, '0')}Z`
}
