/** Computes the figures of layers from their rounds. */
import { BASELINE, type Layer } from './layers.ts'
import type { Round } from './rounds.ts'
import { median, ratio, rounded } from './statistics.ts'

/** The medians of a layer's rounds, and the rounds. */
export interface LayerFigures extends Round {
  readonly id: string
  readonly title: string
  /** Medians of the ratios of each round to the baseline's round beside it. */
  readonly toBaseline: {
    readonly cpu: number
    readonly requestsPerSecond: number
    readonly p50: number
  }
  readonly rounds: readonly Round[]
}

const DIGITS: Readonly<Record<keyof Round, number>> = {
  requests: 0,
  requestsPerSecond: 0,
  p50Ms: 2,
  p95Ms: 2,
  p99Ms: 2,
  cpuMicros: 1,
  cpuUserMicros: 1,
  cpuSystemMicros: 1,
  redisCalls: 4,
  auditEvents: 4,
  otherCores: 2,
}
const RATIO_DIGITS = 3

/**
 * Computes the figures. Throws a `RangeError` if the baseline is not among the layers, or is zero.
 */
export function figuresOf(measured: ReadonlyMap<Layer, readonly Round[]>): LayerFigures[] {
  const [, baseline = []] = [...measured].find(([{ id }]) => id === BASELINE) ?? []
  return [...measured].map(([{ id, title }, rounds]) => {
    const compared = (key: 'cpuMicros' | 'requestsPerSecond' | 'p50Ms') =>
      rounded(
        median(rounds.map((round, index) => ratio(round[key], baseline[index]?.[key] ?? 0))),
        RATIO_DIGITS,
      )
    return {
      id,
      title,
      ...mediansOf(rounds),
      toBaseline: {
        cpu: compared('cpuMicros'),
        requestsPerSecond: compared('requestsPerSecond'),
        p50: compared('p50Ms'),
      },
      rounds,
    }
  })
}

function mediansOf(rounds: readonly Round[]): Round {
  const entries = (Object.keys(DIGITS) as (keyof Round)[]).map((key) => [
    key,
    rounded(median(rounds.map((round) => round[key])), DIGITS[key]),
  ])
  return Object.fromEntries(entries) as Round
}
