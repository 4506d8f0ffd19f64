/** Whether memory grows: a straight line through it over time. */
import { rounded } from '../statistics.ts'

const SECONDS_PER_MINUTE = 60
/** Of a normal distribution, 95 %; there are always enough samples for it. */
const Z_95 = 1.96
/** What a new process does first: fill caches, compile, size heaps. */
const WARM_UP_SHARE = 0.3
/** Under `wrangler dev` workerd collects old garbage in earnest only after about 30,000. */
export const WARM_UP_REQUESTS = 40_000
const MIN_SAMPLES = 10
/** More than this says that there is a leak; less is what collections of garbage leave to chance. */
export const MAX_SLOPE_MB_PER_MINUTE = 2
/** Over less time a slope is the sawtooth of a garbage collector. */
export const MIN_MINUTES = 3

export interface MemorySample {
  readonly seconds: number
  readonly megabytes: number
  /** Answered by the gateway so far, since any moment before. */
  readonly answered: number
}

export interface Slope {
  readonly mbPerMinute: number
  /** Half of the 95 % interval. Samples follow one another, so the true one is wider. */
  readonly plusMinus: number
  readonly samples: number
  readonly minutes: number
  /** So many requests had been answered when the line begins. */
  readonly isWarm: boolean
}

/**
 * Least squares over what comes after the warm-up; undefined for too few samples. `samples` are of one
 * process: another one begins anew.
 */
export function slopeOf(samples: readonly MemorySample[]): Slope | undefined {
  const [first] = samples
  const last = samples.at(-1)
  if (first === undefined || last === undefined) return undefined
  const warm = samples.find(({ answered }) => answered - first.answered >= WARM_UP_REQUESTS)
  const share = first.seconds + (last.seconds - first.seconds) * WARM_UP_SHARE
  const from = Math.max(share, warm?.seconds ?? 0)
  const kept = samples.filter(({ seconds }) => seconds >= from)
  const count = kept.length
  if (count < MIN_SAMPLES) return undefined
  const mean = (of: (sample: MemorySample) => number) =>
    kept.reduce((sum, sample) => sum + of(sample), 0) / count
  const meanX = mean(({ seconds }) => seconds)
  const meanY = mean(({ megabytes }) => megabytes)
  const xx = kept.reduce((sum, { seconds }) => sum + (seconds - meanX) ** 2, 0)
  const xy = kept.reduce((sum, s) => sum + (s.seconds - meanX) * (s.megabytes - meanY), 0)
  const slope = xy / xx
  const residual = kept.reduce(
    (sum, s) => sum + (s.megabytes - meanY - slope * (s.seconds - meanX)) ** 2,
    0,
  )
  const error = Math.sqrt(residual / (count - 2) / xx)
  return {
    mbPerMinute: rounded(slope * SECONDS_PER_MINUTE, 2),
    plusMinus: rounded(Z_95 * error * SECONDS_PER_MINUTE, 2),
    samples: count,
    minutes: rounded((last.seconds - from) / SECONDS_PER_MINUTE, 1),
    isWarm: warm !== undefined,
  }
}

/** The longest run of samples without a gap that a restart leaves. */
export function longestLife(samples: readonly (MemorySample | undefined)[]): MemorySample[] {
  const lives: MemorySample[][] = [[]]
  for (const sample of samples) {
    if (sample === undefined) lives.push([])
    else lives.at(-1)?.push(sample)
  }
  return lives.reduce((longest, life) => (life.length > longest.length ? life : longest))
}
