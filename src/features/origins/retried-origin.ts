/** Repeats requests whose connection to the origin failed, within a budget. */
import { Unavailable } from '../../errors.ts'
import type { RetryDefinition } from '../../origin/definition.ts'
import type { Origin } from '../../origin/origin.ts'
import { isRepeatable } from '../../origin/repeatable.ts'

export interface RetriedOriginOptions extends RetryDefinition {
  /** Each attempt passes its circuit breakers. */
  readonly origin: Origin
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const DEFAULT_PERCENT = 10
/** Retries that can be saved for later. The first request of an isolate can be repeated. */
const MAX_SAVED = 10
const FIRST = 1

/**
 * Wraps an origin so that a request with an idempotent method and without a body is sent again if
 * the origin was unreachable before the headers of a response arrived. The deadline of the request
 * is for all attempts together. A timeout, a response of any status and a refusal by a circuit breaker are
 * final.
 *
 * Each request adds `percent` of a retry to the budget of the isolate, and each retry takes a whole
 * one. So retries never multiply the load of an origin that is down.
 */
export function retriedOrigin({
  origin,
  max = 1,
  percent = DEFAULT_PERCENT,
  now = () => Date.now(),
}: RetriedOriginOptions): Origin {
  let saved = FIRST
  return {
    async send(request) {
      saved = Math.min(saved + percent / 100, MAX_SAVED)
      if (!isRepeatable(request)) return origin.send(request)
      const endMs = now() + request.timeoutMs
      let timeoutMs = request.timeoutMs
      for (let left = max; ; left -= 1) {
        try {
          return await origin.send({ ...request, timeoutMs })
        } catch (error) {
          // The clock may be set back meanwhile.
          timeoutMs = Math.min(endMs - now(), request.timeoutMs)
          if (left === 0 || saved < 1 || timeoutMs <= 0 || !isLost(error)) throw error
          saved -= 1
        }
      }
    },
  }
}

const isLost = (error: unknown): boolean =>
  error instanceof Unavailable && error.fault === 'unreachable' && !error.shortCircuited
