/** Random ids for each request, from random bytes that are drawn for hundreds of requests at once. */
import { v7 } from 'uuid'

/** Each draw is a call into the platform, which takes ten times as long as an id. */
const POOL_BYTES = 4_096
const pool = new Uint8Array(POOL_BYTES)
const poolView = new DataView(pool.buffer)
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

const UUID_BYTES = 16

/** Returns a UUIDv7 for `nowMs` (RFC 9562 section 5.7). Ids of one millisecond are not ordered. */
export function uuidV7(nowMs: number): string {
  const start = draw(UUID_BYTES)
  return v7({
    msecs: nowMs,
    // `v7` uses the last ten bytes only, and would take one bit fewer from them for this number.
    seq: poolView.getUint32(start),
    random: pool.subarray(start, start + UUID_BYTES),
  })
}
