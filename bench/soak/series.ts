/** Collects measurements per second and per minute. */
import type { Verdict } from '../chaos/ledger.ts'
import { percentile } from '../measure/statistics.ts'

const MS_PER_SECOND = 1_000
const SECONDS_PER_MINUTE = 60

export interface Measured {
  readonly nowMs: number
  readonly latencyMs: number
  readonly status: number
  /** Whether a fault was active, or had just ended, during the request. */
  readonly isTroubled: boolean
  readonly verdict: Verdict
}

/** One second of the load. Latencies in milliseconds; null if there was no response. */
export interface SecondFigures {
  readonly answers: number
  readonly ok: number
  readonly refused: number
  readonly failed: number
  /** Requests without a response. */
  readonly none: number
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

export interface MinuteFigures {
  readonly answers: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly maxMs: number | null
  /** Responses to requests that no fault affected. */
  readonly quietAnswers: number
  readonly quietP99Ms: number | null
}

export type Series = ReturnType<typeof createSeries>

interface Bucket {
  readonly latencies: number[]
  readonly quiet: number[]
  ok: number
  refused: number
  failed: number
  none: number
}

const emptyBucket = (): Bucket => ({
  latencies: [],
  quiet: [],
  ok: 0,
  refused: 0,
  failed: 0,
  none: 0,
})

export function createSeries() {
  let startMs = Number.POSITIVE_INFINITY
  let buckets: Bucket[] = []

  function bucketOf(nowMs: number): Bucket | undefined {
    const second = Math.floor((nowMs - startMs) / MS_PER_SECOND)
    if (!(second >= 0)) return undefined
    while (buckets.length <= second) buckets.push(emptyBucket())
    return buckets[second]
  }

  return {
    /** Sets the start of the first second. Discards earlier measurements. */
    begin(nowMs: number): void {
      startMs = nowMs
      buckets = []
    },
    record({ nowMs, latencyMs, status, isTroubled }: Measured): void {
      const bucket = bucketOf(nowMs)
      if (bucket === undefined) return
      if (status === 0) {
        bucket.none++
        return
      }
      bucket.latencies.push(latencyMs)
      if (!isTroubled) bucket.quiet.push(latencyMs)
      if (status < 400) bucket.ok++
      else if (status < 500) bucket.refused++
      else bucket.failed++
    },
    /** Returns all seconds, or the last `last` ones. */
    seconds: (last = buckets.length): readonly SecondFigures[] =>
      buckets.slice(-last).map(({ latencies, ok, refused, failed, none }) => ({
        answers: latencies.length,
        ok,
        refused,
        failed,
        none,
        p50Ms: percentile(latencies, 0.5),
        p95Ms: percentile(latencies, 0.95),
        p99Ms: percentile(latencies, 0.99),
      })),
    minutes(): readonly MinuteFigures[] {
      const minutes: MinuteFigures[] = []
      const whole = Math.max(1, Math.round(buckets.length / SECONDS_PER_MINUTE))
      for (let minute = 1; minute <= whole; minute++) {
        const at = (minute - 1) * SECONDS_PER_MINUTE
        // The last responses arrive shortly after the last minute.
        const part = buckets.slice(at, minute === whole ? undefined : at + SECONDS_PER_MINUTE)
        const latencies = part.flatMap((bucket) => bucket.latencies)
        const quiet = part.flatMap((bucket) => bucket.quiet)
        minutes.push({
          answers: latencies.length,
          p50Ms: percentile(latencies, 0.5),
          p99Ms: percentile(latencies, 0.99),
          maxMs: percentile(latencies, 1),
          quietAnswers: quiet.length,
          quietP99Ms: percentile(quiet, 0.99),
        })
      }
      return minutes
    },
  }
}
