/** Logs that a dependency is down, at most once a minute instead of once for each request. */
import type { Fault } from '../errors.ts'

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
