/** The arithmetic of the benchmark. */

/** The middle value, or the mean of the two middle ones. Throws a `RangeError` for no values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('median: there are no values')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2
}

/** `value / base`. Throws a `RangeError` where the base is nothing to compare with. */
export function ratio(value: number, base: number): number {
  if (!(base > 0)) throw new RangeError(`ratio: cannot compare with ${base}`)
  return value / base
}

/** `value` with at most `digits` after the point. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

const BUCKET_MS = 0.01
/** Two seconds; what takes longer is counted as this long. */
const BUCKETS = 200_000

/** Latencies in buckets of 10 us: however many are recorded, they take 800 KB. */
export interface LatencyHistogram {
  readonly count: number
  record(ms: number): void
  /**
   * The latency, milliseconds, that a share of `quantile` (0 to 1) does not exceed: the nearest
   * rank, as the upper end of its bucket. Throws a `RangeError` if nothing was recorded.
   */
  percentile(quantile: number): number
}

export function createLatencyHistogram(): LatencyHistogram {
  const buckets = new Uint32Array(BUCKETS)
  let count = 0
  return {
    get count() {
      return count
    },
    record(ms) {
      const bucket = Math.min(Math.max(Math.ceil(ms / BUCKET_MS) - 1, 0), BUCKETS - 1)
      buckets[bucket] = (buckets[bucket] as number) + 1
      count++
    },
    percentile(quantile) {
      if (count === 0) throw new RangeError('percentile: nothing was recorded')
      const rank = Math.max(1, Math.ceil(quantile * count))
      let seen = 0
      for (let bucket = 0; bucket < BUCKETS; bucket++) {
        seen += buckets[bucket] as number
        if (seen >= rank) return rounded((bucket + 1) * BUCKET_MS, 2)
      }
      return BUCKETS * BUCKET_MS
    },
  }
}
