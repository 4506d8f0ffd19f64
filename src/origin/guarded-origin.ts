/** Spares a route of the origin that keeps failing, and those who would wait for it. */
import { type CircuitBreaker, createCircuitBreaker } from '../breakers/breaker.ts'
import type { Breakers } from '../breakers/registry.ts'
import { Unavailable } from '../errors.ts'
import type { Origin, OriginRequest } from '../origin.ts'

export interface GuardedOriginOptions {
  readonly origin: Origin
  /** From `createBreakers`. Default nobody watches. */
  readonly watch?: Breakers['watch'] | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number
}

/**
 * Wraps an origin in breakers, one for each `route` that requests name: what hangs is mostly one
 * route, and it must not shut off the others, nor may whoever knows how to make one fail. Where the
 * origin is gone as a whole, each route finds that out for itself. While a breaker is open, `send`
 * throws the `Unavailable` that opened it, and asks nobody.
 *
 * Failures are what `send` reports as `Unavailable`: no connection, no headers in time, no HTTP. An
 * answer is an answer, 500 included. A request whose body still streams from the client counts only
 * if it succeeds, because a slow client looks like a slow origin. Who leaves before the answer tells
 * nothing: if theirs was the probe, the next request is one.
 *
 * @example
 * ```ts
 * const origin = guardedOrigin({ origin: createOrigin({ url: 'https://api.internal.example' }) })
 * ```
 */
export function guardedOrigin({ origin, ...options }: GuardedOriginOptions): Origin {
  const breakers = new Map<string | undefined, CircuitBreaker>()

  function breakerOf(target: string | undefined): CircuitBreaker {
    const known = breakers.get(target)
    if (known !== undefined) return known
    const breaker = createCircuitBreaker({ name: 'origin', target, ...options })
    breakers.set(target, breaker)
    return breaker
  }

  return {
    async send(request) {
      const breaker = breakerOf(request.route)
      const entry = breaker.enter()
      try {
        const answer = await origin.send(request)
        breaker.succeeded()
        return answer
      } catch (error) {
        if (error instanceof Unavailable && !isStreaming(request))
          breaker.failed(entry, error.fault)
        // Or whoever leaves as often as they probe would keep the route shut for everybody.
        else breaker.abandoned(entry)
        throw error
      }
    },
  }
}

const isStreaming = ({ body }: OriginRequest): boolean => body instanceof ReadableStream
