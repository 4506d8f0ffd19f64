/** All breakers of an isolate, for those who watch them. */
import type { Fault } from '../errors.ts'
import { type AlarmLine, createAlarm } from './alarm.ts'
import type { Breaker, BreakerState, BreakerWatch } from './breaker.ts'

export interface BreakerTransition {
  readonly breaker: Breaker
  readonly from: BreakerState
  readonly to: BreakerState
  /** Why it is not closed; undefined where it is. */
  readonly fault: Fault | undefined
}

export interface Breakers {
  /** In the order in which they were made; those of origins appear with their first request. */
  readonly list: readonly Breaker[]
  /** Calls `listener` at each transition, inside the request that causes it: it must not throw. */
  onTransition(listener: (transition: BreakerTransition) => void): void
  /** Enters a breaker into the list; hand this to `createCircuitBreaker`. */
  readonly watch: (breaker: Breaker) => BreakerWatch
}

export interface BreakersOptions {
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** Takes alarms. Default a line of JSON in the log of errors. */
  readonly alarm?: (line: AlarmLine) => void
}

/**
 * Makes the list, and sounds an alarm when a breaker opens, each minute while it does not close,
 * and when it has closed (see `createAlarm`).
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
          // A probe that never came back makes room for the next: that changes nothing.
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
