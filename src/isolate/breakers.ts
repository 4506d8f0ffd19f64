/** The list of all circuit breakers of an isolate, for metrics, traces and alarms. */
import type { Fault } from '../errors.ts'
import { type AlarmLine, createAlarm } from './breaker-alarm.ts'
import type { Breaker, BreakerState, BreakerWatch } from './circuit-breaker.ts'

export interface BreakerTransition {
  readonly breaker: Breaker
  readonly from: BreakerState
  readonly to: BreakerState
  /** Why the breaker is not closed; undefined if it is closed. */
  readonly fault: Fault | undefined
}

export interface Breakers {
  /**
   * All breakers in the order of creation. A breaker of an origin is created by its first request.
   */
  readonly list: readonly Breaker[]
  /** Calls `listener` on each transition, inside the request that causes it. It must not throw. */
  onTransition(listener: (transition: BreakerTransition) => void): void
  /** Adds a breaker to the list. Pass this function to `createCircuitBreaker`. */
  readonly watch: (breaker: Breaker) => BreakerWatch
}

export interface BreakersOptions {
  /** Returns milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** Receives alarms. Default: writes a JSON line to the error log. */
  readonly alarm?: (line: AlarmLine) => void
}

/**
 * Creates an empty list. It raises an alarm when a breaker opens, at most once a minute while it is
 * not closed, and when it closes (see `createAlarm`).
 */
export function createBreakers({ now = Date.now, alarm }: BreakersOptions = {}): Breakers {
  const list: Breaker[] = []
  const listeners: ((transition: BreakerTransition) => void)[] = []
  return {
    list,
    onTransition(listener) {
      listeners.push(listener)
    },
    watch(breaker) {
      list.push(breaker)
      const { down, up } = createAlarm({ ...breaker, write: alarm })
      let from: BreakerState = 'closed'
      let lastFault: Fault = 'unreachable'
      return {
        changed(to, fault) {
          if (fault === undefined) up(now())
          else {
            lastFault = fault
            down(fault, now())
          }
          // A lost probe is replaced by a new one. That is not a transition.
          if (from === to) return
          const transition = { breaker, from, to, fault }
          from = to
          for (const listener of listeners) listener(transition)
        },
        refused: () => down(lastFault, now()),
      }
    },
  }
}
