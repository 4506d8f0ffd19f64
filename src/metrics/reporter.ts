/** When an isolate reports what it has counted, and what becomes of a report that got no answer. */
import { sleep as sleepFor } from '../timers.ts'
import type { WaitUntil } from '../tokens/principal.ts'
import type { Counters, Deltas } from './counters.ts'
import type { MetricsStore } from './store.ts'

export interface ReporterOptions {
  readonly counters: Counters
  readonly store: Pick<MetricsStore, 'add'>
  /** Puts into the counters what others count by themselves; called before each report. */
  readonly collect?: () => void
  /** Dependencies whose breakers are not closed at this moment. */
  readonly open?: () => readonly string[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly sleep?: (ms: number) => Promise<void>
  /** Of this isolate; default 64 random bits. */
  readonly newId?: () => string
}

export interface Reporter {
  /** Sees to it that what was just counted is reported within {@link REPORT_INTERVAL_MS}. */
  touch(waitUntil: WaitUntil): void
}

/** How often an isolate that has something to do reports, at most. */
export const REPORT_INTERVAL_MS = 10_000
/** Past this time whoever was going to report has died with its request. */
const LEASE_MS = REPORT_INTERVAL_MS + 5_000
/** A report that old may have been forgotten by Redis, and could count twice. */
const MAX_REPORT_AGE_MS = 3_000_000

interface Report extends Deltas {
  readonly number: number
  readonly madeMs: number
}

/**
 * Makes the reports of an isolate. The request that counts first after a report keeps the next one:
 * it waits ten seconds behind its answer and sends everything in one call, so nobody else does, and
 * nothing waits for another request. If it dies, the next request after 15 s takes over.
 *
 * Reports are numbered, and sent one after the other: one that got no answer is sent again as it
 * was before there is another, and Redis takes each number once. So a lost answer counts neither
 * twice nor not at all. Lost is what an isolate has not reported when it ends: the counts of ten
 * seconds, or of an outage of Redis.
 */
export function createReporter({
  counters,
  store,
  collect,
  open,
  now,
  sleep = sleepFor,
  newId = randomId,
}: ReporterOptions): Reporter {
  let isolate: string | undefined
  let number = 0
  let unanswered: Report | undefined
  let keptUntilMs = Number.NEGATIVE_INFINITY
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

  async function keep(): Promise<void> {
    await sleep(REPORT_INTERVAL_MS)
    await report()
    keptUntilMs = Number.NEGATIVE_INFINITY
  }

  return {
    touch(waitUntil) {
      const nowMs = now()
      if (nowMs < keptUntilMs) return
      keptUntilMs = nowMs + LEASE_MS
      waitUntil(keep())
    },
  }
}

const ID_BYTES = 8

function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
