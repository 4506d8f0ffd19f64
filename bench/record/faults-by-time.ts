/** Which fault was on when, and for whom. Pure. */
import type { FaultEvent } from './history.ts'

/** Where nothing was wrong. */
export const HEALTHY = 'healthy'
/** Where a fault was over, and a breaker may still have been open. */
export const RECOVERING = 'recovering'
/** Where the machine had no time for it: no fault that was made, and none of the gateway's. */
export const STARVED = 'starved'

/** The longest period of a breaker, its jitter, and a deadline. */
const RECOVERY_MS = 7_000
const BUCKET_MS = 1_000

export interface FaultsByTime {
  /** What was wrong with a process; undefined: nothing, or no longer. */
  at(process: number, atMs: number): FaultEvent | undefined
  /** The fault that can have touched a request: it was on meanwhile, or shortly before. */
  touching(process: number, fromMs: number, untilMs: number): FaultEvent | undefined
  /** Names of what was wrong with any process; `healthy` where nothing was. */
  anywhere(atMs: number): readonly string[]
}

/** Takes them in the order of when they began. Of several the last that was made says what it was. */
export function faultsByTime(faults: readonly FaultEvent[]): FaultsByTime {
  const buckets = new Map<number, FaultEvent[]>()
  const bucketOf = (ms: number) => Math.floor(ms / BUCKET_MS)
  for (const fault of faults) {
    for (let at = bucketOf(fault.fromMs); at <= bucketOf(fault.untilMs); at++) {
      const known = buckets.get(at)
      if (known === undefined) buckets.set(at, [fault])
      else known.push(fault)
    }
  }

  function overlapping(fromMs: number, untilMs: number): readonly FaultEvent[] {
    const found: FaultEvent[] = []
    for (let at = bucketOf(fromMs); at <= bucketOf(untilMs); at++)
      for (const fault of buckets.get(at) ?? [])
        if (fault.fromMs <= untilMs && fault.untilMs >= fromMs) found.push(fault)
    return found
  }
  function lastOf(found: readonly FaultEvent[], process: number): FaultEvent | undefined {
    const own = found.filter(({ processes }) => processes.includes(process))
    return own.findLast(({ name }) => name !== STARVED) ?? own.at(-1)
  }

  return {
    at: (process, atMs) => lastOf(overlapping(atMs, atMs), process),
    touching: (process, fromMs, untilMs) =>
      lastOf(overlapping(fromMs - RECOVERY_MS, untilMs), process),
    anywhere(atMs) {
      const names = new Set(overlapping(atMs, atMs).map(({ name }) => name))
      if (names.size > 1) names.delete(STARVED)
      return names.size > 0 ? [...names] : [HEALTHY]
    },
  }
}
