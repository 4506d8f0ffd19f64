/** Statistics for the benchmark. */

/** Returns the median. Throws a `RangeError` for no values. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('median: there are no values')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2
}

/** Returns `value / base`. Throws a `RangeError` if the base is not above 0. */
export function ratio(value: number, base: number): number {
  if (!(base > 0)) throw new RangeError(`ratio: cannot compare with ${base}`)
  return value / base
}

/** Rounds `value` to at most `digits` decimal places. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}

const BUCKET_MS = 0.01
/** Buckets for latencies up to two seconds. */
const FINE_BUCKETS = 200_000
const FINE_MS = FINE_BUCKETS * BUCKET_MS
const COARSE_MS = 10
/** Buckets for two minutes more. A longer latency counts as the maximum. */
const COARSE_BUCKETS = 12_000

/** The content of a histogram, to send to another process. */
export interface LatencyCounts {
  /** Indexes and counts of the non-empty buckets, alternating. */
  readonly buckets: readonly number[]
  readonly sumMs: number
}

/**
 * Latencies in buckets of 10 us, and of 10 ms above two seconds. Uses 850 KB for any number of
 * values.
 */
export interface LatencyHistogram {
  readonly count: number
  /** Mean in milliseconds. Throws a `RangeError` if nothing was recorded. */
  readonly meanMs: number
  record(ms: number): void
  /**
   * Returns the latency in milliseconds that a share of `quantile` (0 to 1) does not exceed: the
   * nearest rank, as the upper bound of its bucket. Throws a `RangeError` if nothing was recorded.
   */
  percentile(quantile: number): number
  counts(): LatencyCounts
  /** Adds the values of another histogram. */
  add(counts: LatencyCounts): void
}

/** Creates an empty histogram. */
export function createLatencyHistogram(): LatencyHistogram {
  const buckets = new Uint32Array(FINE_BUCKETS + COARSE_BUCKETS)
  let count = 0
  let sumMs = 0
  const recorded = <Value>(value: Value): Value => {
    if (count === 0) throw new RangeError('percentile: nothing was recorded')
    return value
  }
  return {
    get count() {
      return count
    },
    get meanMs() {
      return recorded(sumMs) / count
    },
    record(ms) {
      const bucket = bucketOf(ms)
      buckets[bucket] = (buckets[bucket] as number) + 1
      count++
      sumMs += ms
    },
    percentile(quantile) {
      const rank = Math.max(1, Math.ceil(quantile * recorded(count)))
      let seen = 0
      let bucket = -1
      while (seen < rank) seen += buckets[++bucket] as number
      return upperEndOf(bucket)
    },
    counts() {
      const pairs: number[] = []
      buckets.forEach((held, bucket) => {
        if (held > 0) pairs.push(bucket, held)
      })
      return { buckets: pairs, sumMs }
    },
    add(other) {
      for (let at = 0; at < other.buckets.length; at += 2) {
        const bucket = other.buckets[at] as number
        const held = other.buckets[at + 1] as number
        buckets[bucket] = (buckets[bucket] as number) + held
        count += held
      }
      sumMs += other.sumMs
    },
  }
}

function bucketOf(ms: number): number {
  if (ms <= FINE_MS) return Math.max(Math.ceil(ms / BUCKET_MS) - 1, 0)
  const coarse = Math.ceil((ms - FINE_MS) / COARSE_MS) - 1
  return FINE_BUCKETS + Math.min(coarse, COARSE_BUCKETS - 1)
}

function upperEndOf(bucket: number): number {
  if (bucket < FINE_BUCKETS) return rounded((bucket + 1) * BUCKET_MS, 2)
  return FINE_MS + (bucket + 1 - FINE_BUCKETS) * COARSE_MS
}
