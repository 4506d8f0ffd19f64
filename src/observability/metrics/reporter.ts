/** Schedules the metric reports of an isolate, and repeats reports that got no response. */

import type { WaitUntil } from '../../identity/principal.ts'
import { createAfterResponse } from '../../isolate/after-response.ts'
import { randomHex } from '../../isolate/random-ids.ts'
import type { Counters, Deltas } from './counters.ts'
import type { MetricsStore } from './store.ts'

export interface ReporterOptions {
  readonly counters: Counters
  readonly store: Pick<MetricsStore, 'add'>
  /** Updates the counters from external counts. Called before each report. */
  readonly collect?: () => void
  /** Returns the dependencies with a circuit breaker that is not closed now. */
  readonly open?: () => readonly string[]
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep?: (ms: number) => Promise<void>
  /** Returns the id of this isolate. Default 64 random bits. */
  readonly newId?: () => string
}

export interface Reporter {
  /** Schedules a report of the current counts within {@link REPORT_INTERVAL_MS}. */
  touch(waitUntil: WaitUntil): void
}

/** Interval between two reports of an isolate with new counts, in milliseconds. */
export const REPORT_INTERVAL_MS = 10_000
/** If this time passes, the platform has ended the request that was going to report. */
const LEASE_MS = REPORT_INTERVAL_MS + 5_000
/**
 * Maximum age of a report in milliseconds. Redis may have dropped the number of an older report, so
 * the report could count twice.
 */
const MAX_REPORT_AGE_MS = 3_000_000

const ID_BYTES = 8

interface Report extends Deltas {
  readonly number: number
  readonly madeMs: number
}

/**
 * Creates the reporter of an isolate. The first request that counts after a report makes the next
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
  collect,
  open,
  now,
  sleep,
  newId = () => randomHex(ID_BYTES),
}: ReporterOptions): Reporter {
  let isolate: string | undefined
  let number = 0
  let unanswered: Report | undefined
  let dropped: number | undefined
  let failures: number | undefined

  function nextReport(): Report {
    collect?.()
    number += 1
    return { ...counters.take(), number, madeMs: now() }
  }

  async function report(): Promise<void> {
    if (unanswered !== undefined && now() - unanswered.madeMs > MAX_REPORT_AGE_MS) {
      dropped ??= counters.counter('portcullis_metrics_dropped_total', [])
      counters.add(dropped, unanswered.series.length)
      unanswered = undefined
    }
    isolate ??= newId()
    const sent = unanswered ?? nextReport()
    unanswered = sent
    try {
      await store.add({ isolate, ...sent, open: open?.() ?? [], nowMs: now() })
      if (unanswered === sent) unanswered = undefined
    } catch {
      failures ??= counters.counter('portcullis_metrics_flush_failures_total', [])
      counters.add(failures, 1)
    }
  }

  const touch = createAfterResponse({
    delayMs: REPORT_INTERVAL_MS,
    leaseMs: LEASE_MS,
    now,
    sleep,
    work: report,
  })
  return { touch }
}
