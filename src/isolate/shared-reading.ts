/** Shares the reading of a value between the requests of an isolate, one call at a time. */
import { Unavailable } from '../errors.ts'
import { pollDelayMs, sleep } from './timers.ts'

export interface SharedReadingOptions<Context, Value> {
  /** Reads the value. It should settle within `leaseMs`. */
  readonly read: (context: Context) => Promise<Value>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** How long a value, or an `Unavailable`, is cached. */
  readonly memoryMs: number
  /** After this time the reading request is considered ended, and another request reads. */
  readonly leaseMs: number
}

/** Plain data, not a promise: on Workers a request must not await the I/O of another request. */
interface Reading<Value> {
  readonly outcome: { readonly value: Value } | { readonly failure: Unavailable } | undefined
  readonly untilMs: number
}

/**
 * A request waits longer than this only if several readers end without notice one after another.
 */
const MAX_LEASES = 2

/**
 * Creates a function that returns the value. It calls `read` at most once per `memoryMs`, and never
 * twice at the same time. While one request reads, the others receive the previous value if it is
 * not older than `memoryMs` and `leaseMs` together; otherwise they wait. If the reading request
 * ends without notice, another request reads after `leaseMs`.
 *
 * Throws the errors of `read`; caches `Unavailable` like a value. Throws `Unavailable` (`gateway`,
 * `overloaded`) to a request that has waited for two leases.
 */
export function createSharedReading<Context, Value>({
  read,
  now,
  memoryMs,
  leaseMs,
}: SharedReadingOptions<Context, Value>): (context: Context) => Promise<Value> {
  let last: Reading<Value> = { outcome: undefined, untilMs: Number.NEGATIVE_INFINITY }
  let leaseUntilMs = Number.NEGATIVE_INFINITY

  async function lead(context: Context): Promise<Value> {
    const mine = now() + leaseMs
    leaseUntilMs = mine
    try {
      const value = await read(context)
      last = { outcome: { value }, untilMs: now() + memoryMs }
      return value
    } catch (error) {
      if (error instanceof Unavailable)
        last = { outcome: { failure: error }, untilMs: now() + memoryMs }
      throw error
    } finally {
      if (leaseUntilMs === mine) leaseUntilMs = Number.NEGATIVE_INFINITY
    }
  }

  return async function reading(context) {
    const sinceMs = now()
    for (;;) {
      const nowMs = now()
      const { outcome, untilMs } = last
      const isBeingRead = nowMs < leaseUntilMs
      if (outcome !== undefined) {
        if ('failure' in outcome) {
          if (nowMs < untilMs)
            throw new Unavailable(outcome.failure.dependency, outcome.failure.fault)
        } else if (nowMs < (isBeingRead ? untilMs + leaseMs : untilMs)) {
          return outcome.value
        }
      }
      if (!isBeingRead) return lead(context)
      if (nowMs - sinceMs > MAX_LEASES * leaseMs) throw new Unavailable('gateway', 'overloaded')
      await sleep(pollDelayMs(nowMs - sinceMs))
    }
  }
}
