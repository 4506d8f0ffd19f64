/** Shares the reading of a value between the requests of an isolate, one call at a time. */
import { Unavailable } from '../errors.ts'
import { isWithin } from './period.ts'
import { copyOfFailure, createSingleFlight, type Flight } from './single-flight.ts'

interface SharedReadingOptions<Context, Value> {
  /** Should settle within `leaseMs`. */
  readonly read: (context: Context) => Promise<Value>
  readonly now: () => number
  /** How long a value, or an `Unavailable`, is cached. */
  readonly memoryMs: number
  /** After this time the reading request is considered ended, and another request reads. */
  readonly leaseMs: number
}

type Outcome<Value> = { readonly value: Value } | { readonly failure: Unavailable }

/** A request waits longer only if several readers end without notice one after another. */
const MAX_LEASES = 2
/** There is one value. */
const KEY = ''

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
  const calls = createSingleFlight<Outcome<Value>>({ now, leaseMs })
  let last: Outcome<Value> | undefined
  let lastMs = 0

  async function lead(context: Context, flight: Flight<Outcome<Value>>): Promise<Value> {
    function end(outcome: Outcome<Value>): void {
      last = outcome
      lastMs = now()
      flight.end(outcome)
    }
    try {
      const value = await read(context)
      end({ value })
      return value
    } catch (error) {
      if (error instanceof Unavailable) end({ failure: error })
      else flight.end(undefined)
      throw error
    }
  }

  return async function reading(context) {
    const nowMs = now()
    const running = calls.latest(KEY)
    const isBeingRead = running?.isInProgress() === true
    if (last !== undefined) {
      if ('failure' in last) {
        if (isWithin(lastMs, memoryMs, nowMs)) throw copyOfFailure(last.failure)
      } else if (isWithin(lastMs, isBeingRead ? memoryMs + leaseMs : memoryMs, nowMs)) {
        return last.value
      }
    }
    if (running === undefined) return lead(context, calls.begin(KEY))
    const { flight, outcome } = await calls.follow(KEY, running, (waitedMs) => {
      if (waitedMs > MAX_LEASES * leaseMs) throw new Unavailable('gateway', 'overloaded')
    })
    if (outcome === undefined) return lead(context, flight)
    if ('failure' in outcome) throw copyOfFailure(outcome.failure)
    return outcome.value
  }
}
