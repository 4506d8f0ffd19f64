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
export type SecondFigures = ReturnType<Series['seconds']>[number]

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
    seconds: (last = buckets.length) =>
      buckets.slice(-last).map(({ latencies, ok, refused, failed, none }) => ({
        answers: latencies.length,
        ok,
        refused,
        failed,
        /** Requests without a response. */
        none,
        p50Ms: percentile(latencies, 0.5),
        p95Ms: percentile(latencies, 0.95),
        p99Ms: percentile(latencies, 0.99),
      })),
    minutes() {
      const whole = Math.max(1, Math.round(buckets.length / SECONDS_PER_MINUTE))
      return Array.from({ length: whole }, (_, minute) => {
        const at = minute * SECONDS_PER_MINUTE
        // The last responses arrive shortly after the last minute.
        const part = buckets.slice(at, minute + 1 === whole ? undefined : at + SECONDS_PER_MINUTE)
        const latencies = part.flatMap((bucket) => bucket.latencies)
        const quiet = part.flatMap((bucket) => bucket.quiet)
        return {
          answers: latencies.length,
          p50Ms: percentile(latencies, 0.5),
          p99Ms: percentile(latencies, 0.99),
          maxMs: percentile(latencies, 1),
          /** Responses to requests that no fault affected. */
          quietAnswers: quiet.length,
          quietP99Ms: percentile(quiet, 0.99),
        }
      })
    },
  }
}

export function columnsOf(seconds: readonly SecondFigures[]) {
  const column = <Name extends keyof SecondFigures>(name: Name) =>
    seconds.map((figures) => figures[name])
  return {
    answers: column('answers'),
    ok: column('ok'),
    refused: column('refused'),
    failed: column('failed'),
    none: column('none'),
    p50Ms: column('p50Ms'),
    p95Ms: column('p95Ms'),
    p99Ms: column('p99Ms'),
  }
}
