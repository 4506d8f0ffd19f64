/** Finds the active fault for a time and a process. Pure. */
import type { FaultEvent } from './history.ts'

/** State without a fault. */
export const HEALTHY = 'healthy'
/** State after a fault, while a circuit breaker may still be open. */
export const RECOVERING = 'recovering'
/** State of an overloaded machine: neither a planned fault nor a defect of the gateway. */
export const STARVED = 'starved'

/** The longest open period of a circuit breaker, its jitter, and a timeout. */
const RECOVERY_MS = 7_000
const BUCKET_MS = 1_000

export interface FaultsByTime {
  /** Returns the active fault of a process; undefined if there is none. */
  at(process: number, atMs: number): FaultEvent | undefined
  /**
   * Returns the fault that may have affected a request: active during the request, or shortly
   * before.
   */
  touching(process: number, fromMs: number, untilMs: number): FaultEvent | undefined
  /** Returns the names of the active faults of all processes; `healthy` if there is none. */
  anywhere(atMs: number): readonly string[]
}

/**
 * Creates the index from faults ordered by their start. If several are active, the latest planned
 * one counts.
 */
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
