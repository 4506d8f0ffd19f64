/** Which fault was on when, and for whom. Pure. */
import type { FaultEvent } from './history.ts'

/** Where nothing was wrong. */
export const HEALTHY = 'healthy'
/** Where a fault was over, and a breaker may still have been open. */
export const RECOVERING = 'recovering'
/** The longest period of a breaker, its jitter, and a deadline. */
const RECOVERY_MS = 7_000

export interface FaultsByTime {
  /** What was wrong with a process; undefined: nothing, or no longer. */
  at(process: number, atMs: number): FaultEvent | undefined
  /** The fault that can have touched a request: it was on meanwhile, or shortly before. */
  touching(process: number, fromMs: number, untilMs: number): FaultEvent | undefined
  /** Names of what was wrong with any process; `healthy` where nothing was. */
  anywhere(atMs: number): readonly string[]
}

/** Takes them in the order of when they began. */
export function faultsByTime(faults: readonly FaultEvent[]): FaultsByTime {
  const overlapping = (fromMs: number, untilMs: number) =>
    faults.filter((fault) => fault.fromMs <= untilMs && fault.untilMs >= fromMs)
  return {
    at: (process, atMs) =>
      overlapping(atMs, atMs).findLast(({ processes }) => processes.includes(process)),
    touching: (process, fromMs, untilMs) =>
      overlapping(fromMs - RECOVERY_MS, untilMs).findLast(({ processes }) =>
        processes.includes(process),
      ),
    anywhere(atMs) {
      const names = overlapping(atMs, atMs).map(({ name }) => name)
      return names.length > 0 ? [...new Set(names)] : [HEALTHY]
    },
  }
}
