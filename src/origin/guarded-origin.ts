/** Circuit breakers for the routes of the origin. */
import { Unavailable } from '../errors.ts'
import {
  type CircuitBreaker,
  type CircuitBreakerOptions,
  createCircuitBreaker,
} from '../isolate/circuit-breaker.ts'
import type { Fault } from '../problems/reasons.ts'
import type { Origin } from './origin.ts'

export interface GuardedOriginOptions
  extends Pick<CircuitBreakerOptions, 'watch' | 'now' | 'random'> {
  readonly origin: Origin
  /** Returns the name of the breaker for a route. Default: each route has its own. */
  readonly breakerFor?: (route: string | undefined) => string | undefined
}

/** Faults of a response: the origin is reachable. */
const ANSWERED: ReadonlySet<Fault | undefined> = new Set(['too_large', 'malformed'])

/**
 * Wraps an origin in circuit breakers, by default one for each `route` of the requests: a route that hangs, or
 * a caller who can make one route fail, must not block the others. While a breaker is open, `send`
 * throws `Unavailable` with the fault that opened it, without a call.
 *
 * Failures are errors that `send` reports as `Unavailable`. Every response counts as a success,
 * including a 500, a response with too large a header and one that is not valid HTTP: a caller may be
 * able to provoke them. A failure does not count while the request
 * body still streams from the client, because a slow client looks like a slow origin. A client that
 * disconnects does not count either, nor a shortage of the gateway. If its request was the probe, the next request becomes the probe.
 *
 * @example
 * ```ts
 * const origin = guardedOrigin({ origin: createOrigin({ url: 'https://api.internal.example' }) })
 * ```
 */
export function guardedOrigin({
  origin,
  breakerFor = (route) => route,
  ...options
}: GuardedOriginOptions): Origin {
  const breakers = new Map<string | undefined, CircuitBreaker>()

  function findBreaker(target: string | undefined): CircuitBreaker {
    const known = breakers.get(target)
    if (known !== undefined) return known
    const breaker = createCircuitBreaker({ name: 'origin', target, ...options })
    breakers.set(target, breaker)
    return breaker
  }

  return {
    async send(request) {
      const breaker = findBreaker(breakerFor(request.route))
      const entry = breaker.enter()
      try {
        const answer = await origin.send(request)
        breaker.succeeded()
        return answer
      } catch (error) {
        const isStreaming = request.body instanceof ReadableStream
        const fault =
          error instanceof Unavailable && error.dependency === 'origin' ? error.fault : undefined
        if (ANSWERED.has(fault)) breaker.succeeded()
        else if (fault && !isStreaming) breaker.failed(entry, fault)
        // Otherwise a client that disconnects during each probe could keep the breaker open.
        else breaker.abandoned(entry)
        throw error
      }
    },
  }
}
