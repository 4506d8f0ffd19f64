import type { WaitUntil } from '../../isolate/after-response.ts'
import { createAfterResponse } from '../../isolate/after-response.ts'
import { randomHex } from '../../isolate/random-ids.ts'
import type { Counters } from './counters.ts'
import type { IsolateReport, MetricsStore } from './store.ts'

export interface ReporterOptions {
  readonly counters: Counters
  readonly store: Pick<MetricsStore, 'add'>
  /** Returns the dependencies with a circuit breaker that is not closed now, and the names of own gauges. */
  readonly open: () => readonly string[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep?: ((ms: number) => Promise<void>) | undefined
}

/** Interval between two reports of an isolate with new counts, in milliseconds. */
const REPORT_INTERVAL_MS = 10_000
/** If this time passes, the platform has ended the request that was going to report. */
const LEASE_MS = REPORT_INTERVAL_MS + 5_000
/** Maximum age of a report in milliseconds. Redis could count an older one twice. */
const MAX_REPORT_AGE_MS = 3_000_000

const ID_BYTES = 8

interface Report extends Pick<IsolateReport, 'counts' | 'number'> {
  readonly madeMs: number
}

/**
 * Creates the function that each request calls after it has counted: it schedules a report within
 * {@link REPORT_INTERVAL_MS}. The first request that counts after a report makes the next
 * one. It waits ten seconds after its response and sends all counts in one call. No request waits
 * for another. If the platform ends that request, the next request after 15 s takes over.
 *
 * Reports are numbered and sent one at a time. A report without a response is sent again,
 * unchanged, before the next one is built. Redis applies each number once, so each report counts
 * exactly once. Counts that the isolate did not report before its end are lost: those of ten
 * seconds, or of an outage of Redis.
 */
export function createReporter({
  counters,
  store,
  open,
  now,
  sleep,
}: ReporterOptions): (waitUntil: WaitUntil) => void {
  let isolate: string | undefined
  let number = 0
  let unanswered: Report | undefined

  async function report(): Promise<void> {
    if (unanswered !== undefined && now() - unanswered.madeMs > MAX_REPORT_AGE_MS) {
      const dropped = counters.counter('portcullis_metrics_dropped_total', [])
      counters.add(dropped, unanswered.counts.size)
      unanswered = undefined
    }
    isolate ??= randomHex(ID_BYTES)
    if (unanswered === undefined) number += 1
    const sent = unanswered ?? { counts: counters.take(), number, madeMs: now() }
    unanswered = sent
    try {
      await store.add({ isolate, ...sent, open: open(), nowMs: now() })
      if (unanswered === sent) unanswered = undefined
    } catch {
      counters.add(counters.counter('portcullis_metrics_flush_failures_total', []), 1)
    }
  }

  return createAfterResponse({
    delayMs: REPORT_INTERVAL_MS,
    leaseMs: LEASE_MS,
    now,
    sleep,
    work: report,
  })
}
