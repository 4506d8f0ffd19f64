/** Caches an access token in the isolate, and renews it before it expires, one call at a time. */
import { Unavailable } from '../../errors.ts'
import type { Breakers } from '../../isolate/breakers.ts'
import { createCircuitBreaker } from '../../isolate/circuit-breaker.ts'
import { isWithin } from '../../isolate/period.ts'
import { copyOfFailure, createSingleFlight, type Flight } from '../../isolate/single-flight.ts'
import { DeadlineExceeded, withDeadline } from '../../isolate/timers.ts'

export interface AccessToken {
  readonly token: string
  readonly lifeMs: number
}

export interface TokenSourceOptions {
  /** Throws `Unavailable`. */
  readonly fetchToken: (signal: AbortSignal) => Promise<AccessToken>
  /** The token endpoint, for alarms. */
  readonly target: string
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export type TokenSource = ReturnType<typeof createTokenSource>

/** Of one call to the token endpoint. */
const CALL_TIMEOUT_MS = 5_000
/** A longer call counts as dead: its request was cancelled, or its isolate was frozen. */
const LEASE_MS = 6_000
/** A token is renewed when this part of its life has passed. */
const RENEWED_AT = 0.8
/** Clocks differ, and a request takes time to reach the origin. Less for a token of a short life. */
const EXPIRY_MARGIN_MS = 10_000
/** The pause after a renewal that failed, while the token before it is good. */
const RENEWAL_PAUSE_MS = 5_000
/** A token that was fetched within this time is not fetched again because an origin refuses it. */
const FRESH_MS = 10_000
const KEY = ''

interface Cached {
  readonly token: string
  readonly fetchedAtMs: number
  readonly usableMs: number
  readonly renewAtMs: number
}

type Outcome = { readonly token: string } | { readonly failure: Unavailable }

/**
 * Creates a source without a token. The first request fetches it, and the others wait for the outcome. From four
 * fifths of the token's life on, one request renews it in the background, and all use the old one meanwhile.
 * Five failures in a row open the circuit breaker of the token endpoint.
 */
export function createTokenSource({ fetchToken, target, watch, now }: TokenSourceOptions) {
  const breaker = createCircuitBreaker({ name: 'identity_provider', target, watch, now })
  const flights = createSingleFlight<Outcome>({ now, leaseMs: LEASE_MS })
  let cached: Cached | undefined
  let failedMs = Number.NEGATIVE_INFINITY

  async function fetched(): Promise<Outcome> {
    let entry: number
    try {
      entry = breaker.enter()
    } catch (error) {
      return { failure: failureOf(error) }
    }
    try {
      const startMs = now()
      const { token, lifeMs } = await fetchToken(AbortSignal.timeout(CALL_TIMEOUT_MS))
      breaker.succeeded()
      const margin = Math.min(EXPIRY_MARGIN_MS, lifeMs * (1 - RENEWED_AT))
      cached = {
        token,
        fetchedAtMs: startMs,
        usableMs: lifeMs - margin,
        renewAtMs: startMs + lifeMs * RENEWED_AT,
      }
      return { token }
    } catch (error) {
      const failure = failureOf(error)
      breaker.failed(entry, failure.fault)
      failedMs = now()
      return { failure }
    }
  }

  /** Never rejects. */
  async function lead(flight: Flight<Outcome>): Promise<Outcome> {
    const outcome = await fetched()
    flight.end(outcome)
    return outcome
  }

  async function outcomeWithin(timeoutMs: number): Promise<Outcome> {
    try {
      return await withDeadline(nextOutcome(timeoutMs), timeoutMs)
    } catch (error) {
      if (!(error instanceof DeadlineExceeded)) throw error
      throw new Unavailable('identity_provider', 'timeout')
    }
  }

  async function nextOutcome(timeoutMs: number): Promise<Outcome> {
    const running = flights.latest(KEY)
    if (running === undefined) return lead(flights.begin(KEY))
    const { flight, outcome } = await flights.follow(KEY, running, (waitedMs) => {
      if (waitedMs > timeoutMs) throw new Unavailable('identity_provider', 'timeout')
    })
    return outcome ?? lead(flight)
  }

  return {
    /** Returns a token that has not expired. Waits for `timeoutMs` at most. Throws `Unavailable`. */
    async current(timeoutMs: number): Promise<string> {
      const nowMs = now()
      if (cached !== undefined && isWithin(cached.fetchedAtMs, cached.usableMs, nowMs)) {
        const isIdle = flights.latest(KEY)?.isInProgress() !== true
        const isPaused = isWithin(failedMs, RENEWAL_PAUSE_MS, nowMs)
        if (nowMs >= cached.renewAtMs && !isPaused && isIdle) void lead(flights.begin(KEY))
        return cached.token
      }
      const outcome = await outcomeWithin(timeoutMs)
      if ('failure' in outcome) throw copyOfFailure(outcome.failure)
      return outcome.token
    },
    /**
     * Forgets a token that an origin refuses. Returns whether `current` may return another one: a token that is
     * fresh from its endpoint is not fetched again, so that an origin that refuses every token causes few calls.
     */
    drop(token: string): boolean {
      if (cached?.token !== token) return true
      if (isWithin(cached.fetchedAtMs, FRESH_MS, now())) return false
      cached = undefined
      return true
    },
  }
}

/** A wrong secret is an outage of the origin for callers, whether its own endpoint or the breaker says so. */
function failureOf(error: unknown): Unavailable {
  if (!(error instanceof Unavailable))
    return new Unavailable('identity_provider', 'malformed', { cause: error })
  if (error.fault !== 'unauthorized' || error.dependency === 'origin') return error
  const { retryAfterSeconds, shortCircuited } = error
  return new Unavailable('origin', 'unauthorized', { retryAfterSeconds, shortCircuited })
}
