/** What pairs of measurements say about a slow-down. Pure. */
import { median } from '../statistics.ts'

/** The median of what was measured, and where the true one lies. */
export interface MedianInterval {
  readonly median: number
  readonly low: number
  readonly high: number
  /** How sure that is: at least `CONFIDENCE`. */
  readonly coverage: number
}

/** `noisy`: the machine was too restless to tell. */
export type Verdict = 'ok' | 'regression' | 'noisy'

export const CONFIDENCE = 0.95
/** With fewer no interval of order statistics has that confidence: 1 - 2 / 2^5 is 0.94. */
export const MIN_PAIRS = 6

/**
 * The interval of the sign test: from one of the smallest values to one of the largest, as far
 * in as the confidence allows. Exact for any distribution, so that one pair in which the machine was
 * busy with something else moves nothing. Throws a `RangeError` for fewer than `MIN_PAIRS`.
 */
export function medianInterval(values: readonly number[]): MedianInterval {
  const { length } = values
  if (length < MIN_PAIRS) throw new RangeError(`medianInterval: needs ${MIN_PAIRS} values`)
  // The true median is below the value of rank r + 1 with the chance of r heads or fewer.
  let rank = 0
  let outside = 2 * 0.5 ** length
  let chance = outside
  for (let next = 1; next < length / 2; next++) {
    chance *= (length - next + 1) / next
    if (outside + chance > 1 - CONFIDENCE) break
    outside += chance
    rank = next
  }
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: median(sorted),
    low: sorted[rank] as number,
    high: sorted[length - 1 - rank] as number,
    coverage: 1 - outside,
  }
}

/**
 * Judges ratios of HEAD to BASE (1 is as fast, 1.2 takes a fifth more). `threshold`: the ratio that
 * is still accepted. A regression needs both: more than that in the median, and an interval without
 * 1, so that chance alone does not explain it. Accepted is what certainly stays within the
 * threshold. All else is noisy: measured again, with more pairs or on a quieter machine, it may
 * turn out to be either.
 */
export function verdictOf(
  { median: middle, low, high }: MedianInterval,
  threshold: number,
): Verdict {
  if (middle > threshold && low > 1) return 'regression'
  return high <= threshold ? 'ok' : 'noisy'
}
