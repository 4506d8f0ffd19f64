/** Spans and their OTLP/HTTP JSON encoding (OpenTelemetry Protocol 1.x). */

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
  readonly isError: boolean
}

/** `SpanKind` of the protocol. */
const KINDS = { internal: 1, server: 2 } as const
const STATUS_CODE_ERROR = 2
const SERVICE_NAME = 'portcullis'

/** Creates an `ExportTraceServiceRequest` for `JSON.stringify`, which omits undefined members. */
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
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    traceState: span.tracestate,
    name: span.name,
    kind: KINDS[span.kind],
    startTimeUnixNano: nanosecondsOf(span.startMs),
    endTimeUnixNano: nanosecondsOf(span.endMs),
    attributes: attributesOf(span.attributes),
    status: span.isError ? { code: STATUS_CODE_ERROR } : {},
  }
}

function attributesOf(attributes: Span['attributes']): object[] {
  return Object.entries(attributes).flatMap(([key, value]) => {
    if (value === undefined) return []
    // The OTLP JSON encoding writes 64-bit integers as strings.
    return [
      typeof value === 'number'
        ? { key, value: { intValue: String(value) } }
        : { key, value: { stringValue: value } },
    ]
  })
}

/** Returns nanoseconds as text, because a JavaScript number cannot represent them exactly. */
const nanosecondsOf = (ms: number): string => `${Math.round(ms)}000000`
