import { parseStrictJson } from '../../http/strict-json.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { createAfterResponse } from '../../isolate/after-response.ts'
import { isUntil } from '../../isolate/period.ts'
import type { SpanTally } from '../../isolate/tally.ts'
import { exportRequest, type Span } from './span.ts'

export interface SpanExporterOptions {
  /** The OTLP/HTTP endpoint for traces, which accepts JSON. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly tally?: SpanTally
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  readonly sleep?: (ms: number) => Promise<void>
}

export interface SpanExporter {
  /** Exports spans after the response. Never throws. */
  export(spans: readonly Span[], waitUntil: WaitUntil): void
}

/** How long the first request collects the spans of other requests. */
const GATHER_MS = 2_000
/** If this time passes, the platform has ended the request that was collecting. */
const LEASE_MS = GATHER_MS + 8_000
/** Maximum number of spans in one call and in the memory of an isolate: about 300 KB. */
const MAX_SPANS = 512
const EXPORT_TIMEOUT_MS = 5_000
/** How long the exporter makes no calls after the collector failed. */
export const COOL_DOWN_MS = 10_000

/**
 * Creates the exporter of an isolate. It makes at most one call in two seconds, with at most 512
 * spans. It drops and counts further spans, and spans that the collector does not accept within
 * five seconds. There are no retries, because traces must not cost memory. After a failure it makes
 * no calls for ten seconds and drops the spans of that time.
 */
export function createSpanExporter({
  url,
  headers = {},
  tally = { exported: 0, dropped: 0 },
  now = () => Date.now(),
  sleep,
}: SpanExporterOptions): SpanExporter {
  let gathered: Span[] = []
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

  async function exportGathered(release: () => void): Promise<void> {
    const spans = gathered
    gathered = []
    // The next request collects while this one waits for the collector.
    release()
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

  const gather = createAfterResponse({
    delayMs: GATHER_MS,
    leaseMs: LEASE_MS,
    now,
    sleep,
    work: exportGathered,
  })

  return {
    export(spans, waitUntil) {
      const isPaused = isUntil(failedUntilMs, COOL_DOWN_MS, now())
      if (isPaused || gathered.length + spans.length > MAX_SPANS) {
        tally.dropped += spans.length
        if (isPaused) return
      } else gathered.push(...spans)
      gather(waitUntil)
    },
  }
}

/** Reads an `ExportTracePartialSuccess`. */
function rejectedIn(text: string): number {
  try {
    const answer = parseStrictJson(text) as { partialSuccess?: { rejectedSpans?: string | number } }
    const rejected = Number(answer.partialSuccess?.rejectedSpans ?? 0)
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0
  } catch {
    return 0
  }
}
