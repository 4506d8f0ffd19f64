/** What an operator is told of a dependency that is down, once and not per request. */
import type { Fault } from '../errors.ts'

/** One line of the log. Nothing in it was said by a caller or by the dependency. */
export interface AlarmLine {
  readonly alarm: 'dependency_down' | 'dependency_back'
  readonly dependency: string
  /** Which one, where there are several. */
  readonly target?: string
  /** How it failed last; not where it is back. */
  readonly fault?: Fault
  /** Whole seconds since it went down. */
  readonly seconds: number
}

export interface Alarm {
  /** It is down, still or again. */
  down(fault: Fault, nowMs: number): void
  /** It answers. */
  up(nowMs: number): void
}

export interface AlarmOptions {
  readonly name: string
  readonly target?: string | undefined
  /** Default `console.error`, as JSON. */
  readonly write?: ((line: AlarmLine) => void) | undefined
}

const REPEAT_MS = 60_000

const log = (line: AlarmLine) => console.error(JSON.stringify(line))

/**
 * Makes the alarm of one dependency in one isolate: a line when it goes down, one a minute while
 * requests find it so, and one when it is back. A dependency that flaps is told once a minute, too:
 * it goes down again in silence until the minute is over, and only what was told is taken back.
 */
export function createAlarm({ name, target, write = log }: AlarmOptions): Alarm {
  const of = { dependency: name, ...(target !== undefined && { target }) }
  let downSinceMs: number | undefined
  let toldAtMs = Number.NEGATIVE_INFINITY
  let isTold = false
  const seconds = (nowMs: number) => Math.floor((nowMs - (downSinceMs ?? nowMs)) / 1000)

  return {
    down(fault, nowMs) {
      downSinceMs ??= nowMs
      if (nowMs - toldAtMs < REPEAT_MS) return
      toldAtMs = nowMs
      isTold = true
      write({ alarm: 'dependency_down', ...of, fault, seconds: seconds(nowMs) })
    },
    up(nowMs) {
      if (isTold) write({ alarm: 'dependency_back', ...of, seconds: seconds(nowMs) })
      isTold = false
      downSinceMs = undefined
    },
  }
}
