/** Spans, and how OTLP/HTTP writes them as JSON (OpenTelemetry Protocol 1.x). */

/** A span that has ended. */
export interface Span {
  /** 32 and 16 lower-case hex digits. */
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly tracestate: string | undefined
  readonly kind: keyof typeof KINDS
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string | number | undefined>>
  /** Whether what it stands for failed. */
  readonly isError: boolean
}

/** `SpanKind` of the protocol. */
const KINDS = { internal: 1, server: 2 } as const
/** `STATUS_CODE_ERROR` of the protocol. */
const STATUS_ERROR = 2
const SERVICE_NAME = 'portcullis'

/** An `ExportTraceServiceRequest` of these spans. */
export function exportRequest(spans: readonly Span[]): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': SERVICE_NAME }) },
        scopeSpans: [{ scope: { name: SERVICE_NAME }, spans: spans.map(spanOf) }],
      },
    ],
  }
}

function spanOf(span: Span): object {
  const { traceId, spanId, parentSpanId, tracestate, name } = span
  return {
    ...{ traceId, spanId, name },
    ...(parentSpanId !== undefined && { parentSpanId }),
    ...(tracestate !== undefined && { traceState: tracestate }),
    kind: KINDS[span.kind],
    startTimeUnixNano: nanosecondsOf(span.startMs),
    endTimeUnixNano: nanosecondsOf(span.endMs),
    attributes: attributesOf(span.attributes),
    status: span.isError ? { code: STATUS_ERROR } : {},
  }
}

function attributesOf(attributes: Span['attributes']): object[] {
  return Object.entries(attributes).flatMap(([key, value]) => {
    if (value === undefined) return []
    // 64-bit numbers are text in this JSON.
    return [
      typeof value === 'number'
        ? { key, value: { intValue: String(value) } }
        : { key, value: { stringValue: value } },
    ]
  })
}

/** As text, for it is more than a number holds. */
const nanosecondsOf = (ms: number): string => `${Math.round(ms)}000000`
