/** The list of all circuit breakers of an isolate, for metrics and traces, and their alarms. */
import type { Fault } from '../problems/reasons.ts'
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

/** One line of the log. Contains no text from callers or from the dependency. */
export interface AlarmLine {
  readonly alarm: 'dependency_down' | 'dependency_back'
  readonly dependency: string
  /** The instance, if there are several of the dependency. */
  readonly target?: string
  /** The last fault. Undefined when the dependency is back. */
  readonly fault?: Fault
  /** Whole seconds since the outage began. */
  readonly seconds: number
}

export interface Alarm {
  /** Reports that the dependency is down. May be called repeatedly during an outage. */
  down(fault: Fault, nowMs: number): void
  /** Reports that the dependency responds again. */
  up(nowMs: number): void
}

export interface AlarmOptions {
  readonly name: string
  readonly target?: string | undefined
  /** Default: `console.error`, as JSON. */
  readonly write?: ((line: AlarmLine) => void) | undefined
}

const REPEAT_MS = 60_000

const log = (line: AlarmLine) => console.error(JSON.stringify(line))

/**
 * Creates the alarm of one dependency in one isolate. It writes a line when the dependency goes
 * down, and a line when it is back. During an outage, it repeats the first line at most once a
 * minute, while requests find the dependency down.
 *
 * A dependency that flaps also causes at most one `dependency_down` line a minute. An outage that
 * was not logged gets no `dependency_back` line.
 */
export function createAlarm({ name, target, write = log }: AlarmOptions): Alarm {
  const of = { dependency: name, ...(target !== undefined && { target }) }
  let downSinceMs: number | undefined
  let loggedAtMs = Number.NEGATIVE_INFINITY
  let isLogged = false
  const seconds = (nowMs: number) => Math.floor((nowMs - (downSinceMs ?? nowMs)) / 1000)

  return {
    down(fault, nowMs) {
      downSinceMs ??= nowMs
      if (nowMs - loggedAtMs < REPEAT_MS) return
      loggedAtMs = nowMs
      isLogged = true
      write({ alarm: 'dependency_down', ...of, fault, seconds: seconds(nowMs) })
    },
    up(nowMs) {
      if (isLogged) write({ alarm: 'dependency_back', ...of, seconds: seconds(nowMs) })
      isLogged = false
      downSinceMs = undefined
    },
  }
}
