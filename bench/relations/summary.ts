/** The results of the relation measurements, and values that figures and tables share. Pure. */
import { medianOf, sumOf } from '../requests/rounds.ts'
import { rounded } from '../statistics.ts'
import type { Filled } from './fill.ts'
import type { CheckRound, ChecksById, SlowRound } from './measure-checks.ts'
import type { Course, Paced, WayId, WayRound } from './measure-gateway.ts'
import type { SlowGraph } from './slow-graphs.ts'

export interface Found {
  readonly filled: readonly Filled[]
  /** The size at which the ways were measured. */
  readonly usual: number
  readonly checks: ChecksById
  readonly ways: Readonly<Record<WayId, readonly WayRound[]>>
  readonly courses: readonly Course[]
  readonly paced: Paced
  /** The longest check in Redis alone, without the slow graphs, in microseconds. */
  readonly slowestMicros: number
  readonly slow: readonly { readonly graph: SlowGraph; readonly round: SlowRound }[]
}

export const QUANTILES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const
export type Quantile = keyof typeof QUANTILES
export type Answer = 'allowed' | 'denied'

export interface Summary {
  readonly found: Found
  roundsOf(answer: Answer, size: number): readonly CheckRound[]
  /** Time of a check in Redis alone, the median of its rounds. */
  microsOf(answer: Answer, size: number): number
  /** CPU time of Redis for a check. */
  cpuOf(answer: Answer, size: number): number
  /** Latency of a course. Throws a `RangeError` if the course was not measured. */
  pacedMs(way: Course['way'], size: number, quantile: Quantile): number
  /** Calls to Redis per 100 responses. */
  callsOf(way: WayId): number
}

export function summaryOf(found: Found): Summary {
  const { checks, ways, courses, paced } = found
  const roundsOf = (answer: Answer, size: number) => checks[`${answer}-${size}`] ?? []
  return {
    found,
    roundsOf,
    microsOf: (answer, size) => medianOf(roundsOf(answer, size), 'micros', 1),
    cpuOf: (answer, size) => medianOf(roundsOf(answer, size), 'cpuMicros', 1),
    pacedMs(way, size, quantile) {
      const course = courses.findIndex((one) => one.way === way && one.size === size)
      const latencies = paced.each[course]
      if (latencies === undefined)
        throw new RangeError(`${way} with ${size} tuples was not measured`)
      return latencies.percentile(QUANTILES[quantile])
    },
    callsOf: (way) =>
      rounded(
        (100 * sumOf(ways[way], ({ counts }) => counts.calls)) /
          sumOf(ways[way], ({ right }) => right),
        2,
      ),
  }
}
