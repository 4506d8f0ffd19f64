/** Circuit breakers: whether a dependency that keeps failing is asked at all. No I/O, no timer. */
import { type Fault, Unavailable } from '../errors.ts'

/** `half_open`: a probe is under way, and everybody else is still refused. */
export type BreakerState = 'closed' | 'open' | 'half_open'

/** A breaker as observers see it. Its state is this isolate's alone. */
export interface Breaker {
  /** The dependency behind it. */
  readonly name: 'redis' | 'key_set' | 'authority' | 'origin'
  /** Which one, where there are several: URI of a key set or authority, `GET /orders/:id` of an origin. */
  readonly target: string | undefined
  state(): BreakerState
}

/** What a breaker tells of itself. */
export interface BreakerWatch {
  /** `fault` is why it is not closed; undefined where it is. */
  changed(to: BreakerState, fault: Fault | undefined): void
  /** A request was refused unasked. */
  refused(): void
}

/** A breaker as callers of the dependency use it. */
export interface CircuitBreaker extends Breaker {
  /**
   * Asks to call. Returns a number to hand to `failed`; throws `Unavailable` with the fault that
   * opened the breaker, and the seconds until the next probe, while it is open.
   */
  enter(): number
  /** An answer arrived, whoever asked for it: closes the breaker. */
  succeeded(): void
  /** The call that `enter` gave this number to has failed. */
  failed(entry: number, fault: Fault): void
  /** The same call has ended, and tells nothing: if it was the probe, the next one is. */
  abandoned(entry: number): void
}

export interface CircuitBreakerOptions {
  readonly name: Breaker['name']
  readonly target?: string | undefined
  /** Failures in a row that open it. Default 5. */
  readonly failures?: number
  /** Takes the transitions. Default nobody. */
  readonly watch?: ((breaker: Breaker) => BreakerWatch) | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number
}

export const DEFAULT_FAILURES = 5
/** How long it stays open before the first probe, at most. */
export const FIRST_PERIOD_MS = 500
/** Periods of this length, so that what comes and goes by the second is met while it is there. */
export const FIRST_PERIODS = 4
/** No dependency that is back is kept waiting for longer. */
export const MAX_PERIOD_MS = 5_000
const AT_ONCE = Number.NEGATIVE_INFINITY

/**
 * Makes the breaker of one isolate before one dependency. It opens after so many failures in a row,
 * refuses without asking for one period (half a second, from the fifth on doubling to 5 s, up to half
 * of it taken off by chance), then lets one request through as a probe, and closes with the first
 * answer.
 *
 * There is nothing to await in it, because on Workers a request may not wait for another's promise,
 * and a request may end without a word: who meets a probe that is under way is refused at once. A
 * probe that has not come back after a period counts as failed, and the next request probes; one that is
 * known to have been abandoned costs nothing. A failure counts only if no answer has arrived since
 * its call began: what is late beside others that are answered is no outage, and calls from before
 * an outage do not prolong it.
 */
export function createCircuitBreaker({
  name,
  target,
  failures = DEFAULT_FAILURES,
  watch,
  now = Date.now,
  random = Math.random,
}: CircuitBreakerOptions): CircuitBreaker {
  let state: BreakerState = 'closed'
  /** Changes with every answer and every transition; what began under another one is old news. */
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
    const doublings = Math.max(0, periods - FIRST_PERIODS + 1)
    periodMs = Math.min(FIRST_PERIOD_MS * 2 ** doublings, MAX_PERIOD_MS) * (1 - random() / 2)
    periods += 1
    probeAtMs = now() + periodMs
  }

  function open(): void {
    beginPeriod()
    become('open')
  }

  return {
    ...breaker,
    enter() {
      if (state === 'closed') return round
      const nowMs = now()
      if (nowMs < probeAtMs) {
        observer?.refused()
        const retryAfterSeconds = Math.max(1, Math.ceil((probeAtMs - nowMs) / 1000))
        throw new Unavailable(name, lastFault, { retryAfterSeconds, unasked: true })
      }
      // A probe is still under way that takes longer than its period: another failure, so far.
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
      if (state === 'half_open' || failuresInRow >= failures) open()
    },
    abandoned(entry) {
      if (entry === round && state === 'half_open') probeAtMs = AT_ONCE
    },
  }
}

/**
 * The same breaker for calls that nobody waits for, such as counts behind an answer: refused unless
 * it is closed, they neither open it, nor probe, nor close it. What they lose in an outage is small,
 * and how many there are is up to those who are refused.
 */
export const bystanderOf = ({
  name,
  state,
}: Breaker): Pick<CircuitBreaker, 'enter' | 'succeeded' | 'failed'> => ({
  enter() {
    if (state() !== 'closed') throw new Unavailable(name, 'unreachable', { unasked: true })
    return 0
  },
  succeeded() {},
  failed() {},
})
