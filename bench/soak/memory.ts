/** Detects memory growth with a linear fit over time. */
import { rounded } from '../measure/statistics.ts'

const SECONDS_PER_MINUTE = 60
/** The 95 % quantile of the normal distribution; there are always enough samples for it. */
const Z_95 = 1.96
/** Share of the samples in which a new process fills caches, compiles and sizes its heaps. */
const WARM_UP_SHARE = 0.3
/** Under `wrangler dev`, complete collections start only after about 30,000 requests. */
const WARM_UP_REQUESTS = 40_000
const MIN_SAMPLES = 10
/** A larger slope is a leak. A smaller slope may be an effect of garbage collection. */
export const MAX_SLOPE_MB_PER_MINUTE = 2
/** Over a shorter time the slope only shows the garbage collector. */
export const MIN_MINUTES = 3

export interface MemorySample {
  readonly seconds: number
  readonly megabytes: number
  /** Number of responses of the gateway since any fixed moment. */
  readonly answered: number
}

export interface Slope {
  readonly mbPerMinute: number
  /** Half of the 95 % interval. Samples are not independent, so the true interval is wider. */
  readonly plusMinus: number
  readonly samples: number
  readonly minutes: number
  /** Whether enough requests had been answered at the start of the line. */
  readonly isWarm: boolean
}

/** Fits a line to the samples of one process after its warm-up; undefined: too few samples. */
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

/** Returns the longest sequence of samples without a restart. */
export function longestLife(samples: readonly (MemorySample | undefined)[]): MemorySample[] {
  const lives: MemorySample[][] = [[]]
  for (const sample of samples) {
    if (sample === undefined) lives.push([])
    else lives.at(-1)?.push(sample)
  }
  return lives.reduce((longest, life) => (life.length > longest.length ? life : longest))
}
