/** Sends the spans of an isolate to a collector, some seconds of them at a time. */
import { sleep as sleepFor } from '../timers.ts'
import type { WaitUntil } from '../tokens/principal.ts'
import { exportRequest, type Span } from './span.ts'

export interface SpanExporterOptions {
  /** OTLP/HTTP takes traces here, as JSON. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Where spans are counted. */
  readonly tally?: SpanTally
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  readonly sleep?: (ms: number) => Promise<void>
}

/** What became of spans; only grows. */
export interface SpanTally {
  exported: number
  dropped: number
}

export interface SpanExporter {
  /** Sends spans behind the answer; never throws. */
  export(spans: readonly Span[], waitUntil: WaitUntil): void
}

/** How long the request that comes first gathers spans of others. */
export const GATHER_MS = 2_000
/** Past this time whoever was gathering has died with its request. */
const LEASE_MS = GATHER_MS + 8_000
/** Of one call, and of what an isolate holds: about 300 KB. */
export const MAX_SPANS = 512
const EXPORT_TIMEOUT_MS = 5_000
/** How long a collector that failed is left alone. */
export const COOL_DOWN_MS = 10_000

/**
 * Makes the exporter of an isolate: one call in two seconds at most, with at most 512 spans. What
 * is beyond, and what a collector does not take within five seconds, is dropped and counted: a
 * trace is worth no memory and no retry. A collector that failed is not asked for ten seconds, and
 * the spans of that time are dropped.
 */
export function createSpanExporter({
  url,
  headers = {},
  tally = { exported: 0, dropped: 0 },
  now = Date.now,
  sleep = sleepFor,
}: SpanExporterOptions): SpanExporter {
  let gathered: Span[] = []
  let gatheringUntilMs = Number.NEGATIVE_INFINITY
  let failedUntilMs = Number.NEGATIVE_INFINITY

  async function post(spans: readonly Span[]): Promise<number> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(exportRequest(spans)),
      redirect: 'manual',
      signal: AbortSignal.timeout(EXPORT_TIMEOUT_MS),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`status ${response.status}`)
    return rejectedIn(text)
  }

  async function gather(): Promise<void> {
    await sleep(GATHER_MS)
    const spans = gathered
    gathered = []
    gatheringUntilMs = Number.NEGATIVE_INFINITY
    if (spans.length === 0) return
    try {
      const rejected = Math.min(await post(spans), spans.length)
      tally.exported += spans.length - rejected
      tally.dropped += rejected
    } catch {
      tally.dropped += spans.length
      failedUntilMs = now() + COOL_DOWN_MS
    }
  }

  return {
    export(spans, waitUntil) {
      const nowMs = now()
      if (nowMs < failedUntilMs || gathered.length + spans.length > MAX_SPANS) {
        tally.dropped += spans.length
        if (nowMs < failedUntilMs) return
      } else gathered.push(...spans)
      if (nowMs < gatheringUntilMs) return
      gatheringUntilMs = nowMs + LEASE_MS
      waitUntil(gather())
    },
  }
}

/** How many spans a collector says that it did not take (`ExportTracePartialSuccess`). */
function rejectedIn(text: string): number {
  try {
    const answer = JSON.parse(text) as { partialSuccess?: { rejectedSpans?: string | number } }
    const rejected = Number(answer.partialSuccess?.rejectedSpans ?? 0)
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0
  } catch {
    return 0
  }
}
