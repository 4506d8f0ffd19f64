/** All circuit breakers of an isolate, for metrics and traces, and their alarms. */
import type { Fault } from '../problems/reasons.ts'
import type { Breaker, BreakerState, BreakerWatch } from './circuit-breaker.ts'
import { isWithin } from './period.ts'

export interface BreakerTransition {
  readonly breaker: Breaker
  readonly from: BreakerState
  readonly to: BreakerState
  /** Why the breaker is not closed; undefined if it is closed. */
  readonly fault: Fault | undefined
}

export interface Breakers {
  /** In the order of creation. A breaker of an origin is created by its first request. */
  readonly list: readonly Breaker[]
  /** Calls `listener` on each transition, inside the request that causes it. It must not throw. */
  onTransition(listener: (transition: BreakerTransition) => void): void
  /** Adds a breaker to the list. For `createCircuitBreaker`. */
  readonly watch: (breaker: Breaker) => BreakerWatch
}

export interface BreakersOptions {
  readonly now?: () => number
  /** Receives alarms. Default: writes a JSON line to the error log. */
  readonly alarm?: (line: AlarmLine) => void
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

const REPEAT_ALARM_MS = 60_000

/**
 * Creates an empty list. While requests find a dependency down, it raises `dependency_down` at most
 * once a minute, also if the dependency flaps, and `dependency_back` when a breaker with an alarm
 * closes.
 */
export function createBreakers({
  now = () => Date.now(),
  alarm = (line) => console.error(JSON.stringify(line)),
}: BreakersOptions = {}): Breakers {
  const list: Breaker[] = []
  const listeners: ((transition: BreakerTransition) => void)[] = []

  function watch(breaker: Breaker): BreakerWatch {
    const { name, target } = breaker
    const of = { dependency: name, ...(target !== undefined && { target }) }
    let from: BreakerState = 'closed'
    let lastFault: Fault = 'unreachable'
    let downSinceMs: number | undefined
    let alarmedAtMs = 0
    let isAlarmed = false
    const seconds = (nowMs: number) =>
      Math.max(0, Math.floor((nowMs - (downSinceMs ?? nowMs)) / 1000))

    function down(): void {
      const nowMs = now()
      downSinceMs ??= nowMs
      if (isWithin(alarmedAtMs, REPEAT_ALARM_MS, nowMs)) return
      alarmedAtMs = nowMs
      isAlarmed = true
      alarm({ alarm: 'dependency_down', ...of, fault: lastFault, seconds: seconds(nowMs) })
    }
    function up(): void {
      if (isAlarmed) alarm({ alarm: 'dependency_back', ...of, seconds: seconds(now()) })
      downSinceMs = undefined
      isAlarmed = false
    }

    list.push(breaker)
    return {
      changed(to, fault) {
        if (fault === undefined) up()
        else {
          lastFault = fault
          down()
        }
        // A lost probe is replaced by a new one. That is not a transition.
        if (from === to) return
        const transition = { breaker, from, to, fault }
        from = to
        for (const listener of listeners) listener(transition)
      },
      refused: down,
    }
  }

  return {
    list,
    onTransition(listener) {
      listeners.push(listener)
    },
    watch,
  }
}
