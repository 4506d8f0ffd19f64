/** Circuit breakers: stop calls to a dependency that keeps failing. No I/O and no timers. */
import { Unavailable } from '../errors.ts'
import type { Dependency, Fault } from '../problems/reasons.ts'
import { secondsUntil } from '../problems/retry-after.ts'
import { isUntil } from './period.ts'

/** `half_open`: a probe is in progress, and all other requests are still refused. */
export type BreakerState = 'closed' | 'open' | 'half_open'

/** The read-only view of a breaker. */
export interface Breaker {
  readonly name: Exclude<Dependency, 'audit_log' | 'signing_keys' | 'gateway'>
  /** The instance: the URI of a key set, token endpoint or decision point, an issuer, or an origin and its route. */
  readonly target: string | undefined
  state(): BreakerState
  /** Of a key set: when its last download began, in milliseconds since the epoch. */
  readonly fetchedAtMs?: () => number | undefined
}

/** Receives the events of one breaker. */
export interface BreakerWatch {
  /** `fault`: why the breaker is not closed; undefined if it is closed. */
  changed(to: BreakerState, fault: Fault | undefined): void
  /** A request was short-circuited. */
  refused(): void
}

export interface CircuitBreaker extends Breaker {
  /**
   * Returns an entry number for `failed` and `abandoned`. While the breaker is open, throws
   * `Unavailable` with the fault that opened it and the seconds until the next probe.
   */
  enter(): number
  /** Any call had a response: closes the breaker. */
  succeeded(): void
  failed(entry: number, fault: Fault): void
  /** The call ended without a result. If it was the probe, the next request becomes the probe. */
  abandoned(entry: number): void
}

export interface CircuitBreakerOptions {
  readonly name: Breaker['name']
  readonly target?: string | undefined
  /** Consecutive failures that open the breaker. Default 5. */
  readonly failures?: number
  readonly watch?: ((breaker: Breaker) => BreakerWatch) | undefined
  readonly now?: () => number
  /** A number in [0, 1). Default `Math.random`. */
  readonly random?: () => number
}

export const DEFAULT_FAILURES = 5
/** Maximum time between opening and the first probe. */
export const FIRST_PERIOD_MS = 500
/** Periods of this length, so that probes find a dependency that fails only for moments. */
const FIRST_PERIODS = 4
/** A dependency that has recovered receives a probe within this time. */
export const MAX_PERIOD_MS = 5_000
const AT_ONCE = 0

/** Returns the length of a period before chance takes off up to half of it; the first has index 0. */
export const longestPeriodMs = (index: number): number =>
  Math.min(FIRST_PERIOD_MS * 2 ** Math.max(0, index - FIRST_PERIODS + 1), MAX_PERIOD_MS)

/**
 * Creates the circuit breaker of one isolate for one dependency. It opens after `failures`
 * consecutive failures. It then refuses all calls for one period, lets one request through as a
 * probe, and closes on the first response. The first four periods are half a second. Later periods
 * double up to 5 s. Random jitter shortens each period by up to half.
 *
 * No method waits: on Workers, a request must not await a promise of another request, and may end
 * without notice. A request that arrives during a probe is refused at once. A probe without a result
 * after one period counts as failed, and the next request becomes the probe. A probe that is
 * reported as abandoned is replaced without delay.
 *
 * A failure counts only if no response has arrived since its call began. A slow call while other
 * calls succeed is not an outage, and calls from before an outage do not prolong it.
 */
export function createCircuitBreaker({
  name,
  target,
  failures = DEFAULT_FAILURES,
  watch,
  now = () => Date.now(),
  random = Math.random,
}: CircuitBreakerOptions): CircuitBreaker {
  let state: BreakerState = 'closed'
  /** Changes with every response and transition. Failures of older calls are ignored. */
  let round = 0
  let failuresInRow = 0
  let lastFault: Fault = 'unreachable'
  let periods = 0
  let periodMs = 0
  let probeAtMs = 0

  const breaker = { name, target, state: () => state }
  const observer = watch?.(breaker)

  function become(next: BreakerState): void {
    state = next
    round = (round + 1) | 0
    observer?.changed(next, next === 'closed' ? undefined : lastFault)
  }

  function beginPeriod(): void {
    periodMs = longestPeriodMs(periods) * (1 - random() / 2)
    periods += 1
    probeAtMs = now() + periodMs
  }

  return {
    ...breaker,
    enter() {
      if (state === 'closed') return round
      const nowMs = now()
      if (isUntil(probeAtMs, periodMs, nowMs)) {
        observer?.refused()
        const retryAfterSeconds = secondsUntil(probeAtMs, nowMs)
        throw new Unavailable(name, lastFault, { retryAfterSeconds, shortCircuited: true })
      }
      // The probe in progress has exceeded its period and counts as failed.
      if (state === 'half_open' && probeAtMs !== AT_ONCE) beginPeriod()
      else probeAtMs = nowMs + periodMs
      become('half_open')
      return round
    },
    succeeded() {
      failuresInRow = 0
      round = (round + 1) | 0
      if (state === 'closed') return
      periods = 0
      become('closed')
    },
    failed(entry, fault) {
      if (entry !== round) return
      lastFault = fault
      failuresInRow += 1
      if (state !== 'half_open' && failuresInRow < failures) return
      beginPeriod()
      become('open')
    },
    abandoned(entry) {
      if (entry === round && state === 'half_open') probeAtMs = AT_ONCE
    },
  }
}

/**
 * Returns a view of a breaker for calls that no request waits for, such as counters that are
 * written after the response. They are refused unless the breaker is closed, and their results do
 * not open, probe or close it: refused callers determine how many such calls there are.
 */
export const passiveBreakerOf = ({
  name,
  state,
}: Breaker): Pick<CircuitBreaker, 'enter' | 'succeeded' | 'failed'> => ({
  enter() {
    if (state() !== 'closed') throw new Unavailable(name, 'unreachable', { shortCircuited: true })
    return 0
  },
  succeeded() {},
  failed() {},
})
