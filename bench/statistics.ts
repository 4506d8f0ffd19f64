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
/** Up to two seconds. */
const FINE_BUCKETS = 200_000
const FINE_MS = FINE_BUCKETS * BUCKET_MS
const COARSE_MS = 10
/** Two minutes more; what takes longer is counted as this long. */
const COARSE_BUCKETS = 12_000

/** What a histogram holds, for another process. */
export interface LatencyCounts {
  /** Places and counts of the buckets that are not empty, in turn. */
  readonly buckets: readonly number[]
  readonly sumMs: number
}

/** Latencies in buckets of 10 us, above two seconds of 10 ms: however many, they take 850 KB. */
export interface LatencyHistogram {
  readonly count: number
  /** Milliseconds. Throws a `RangeError` if nothing was recorded. */
  readonly meanMs: number
  record(ms: number): void
  /**
   * The latency, milliseconds, that a share of `quantile` (0 to 1) does not exceed: the nearest
   * rank, as the upper end of its bucket. Throws a `RangeError` if nothing was recorded.
   */
  percentile(quantile: number): number
  counts(): LatencyCounts
  /** Adds what another one has recorded. */
  add(counts: LatencyCounts): void
}

/** Creates an empty one. */
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
