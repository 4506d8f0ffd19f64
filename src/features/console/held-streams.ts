/** Bounds the streams that one visitor has open at a time in this isolate. */
import { Denied } from '../../errors.ts'

const MAX_STREAMS = 4
/** The browser ends an older one, or that one ends by itself. */
const RETRY_SECONDS = 30

interface Held {
  readonly untilMs: number
}

/**
 * Returns a function that counts a stream of a visitor, until the returned function is called, or the time. It throws
 * `Denied` (`rate_limited`) for more than 4.
 */
export function createHeldStreams(now: () => number) {
  const held = new Map<string, readonly Held[]>()

  return function hold(visitor: string, untilMs: number): () => void {
    const open = (held.get(visitor) ?? []).filter((one) => one.untilMs > now())
    if (open.length >= MAX_STREAMS)
      throw new Denied({
        ...{ code: 'rate_limited', limit: 'console_streams', retryAfterSeconds: RETRY_SECONDS },
      })
    const stream: Held = { untilMs }
    held.set(visitor, [...open, stream])
    return function release() {
      const rest = (held.get(visitor) ?? []).filter((one) => one !== stream)
      if (rest.length === 0) held.delete(visitor)
      else held.set(visitor, rest)
    }
  }
}
