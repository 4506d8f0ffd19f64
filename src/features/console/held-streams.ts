/** Bounds the streams that one visitor, and all visitors, have open at a time in this isolate. */
import { Denied } from '../../errors.ts'

const MAX_STREAMS = 4
const MAX_OF_ALL = 64
/** The browser ends an older one, or that one ends by itself. */
const RETRY_SECONDS = 30

interface Held {
  readonly untilMs: number
}

/**
 * Returns a function that counts a stream of a visitor, until the returned function is called, or the time. It throws
 * `Denied` (`rate_limited`) for more than 4, or 64 of all visitors.
 */
export function createHeldStreams(now: () => number) {
  const held = new Map<string, readonly Held[]>()

  return function hold(visitor: string, untilMs: number): () => void {
    for (const [name, streams] of held)
      keep(
        name,
        streams.filter((one) => one.untilMs > now()),
      )
    const open = held.get(visitor) ?? []
    const all = [...held.values()].reduce((sum, streams) => sum + streams.length, 0)
    if (open.length >= MAX_STREAMS || all >= MAX_OF_ALL)
      throw new Denied({
        ...{ code: 'rate_limited', limit: 'console_streams', retryAfterSeconds: RETRY_SECONDS },
      })
    const stream: Held = { untilMs }
    held.set(visitor, [...open, stream])
    return function release() {
      keep(
        visitor,
        (held.get(visitor) ?? []).filter((one) => one !== stream),
      )
    }
  }

  function keep(visitor: string, streams: readonly Held[]): void {
    if (streams.length === 0) held.delete(visitor)
    else held.set(visitor, streams)
  }
}
