/** Exports requests as spans of their traces. */
import type { Context } from 'hono'
import { decisionOf, reasonOf } from '../../audit/reason.ts'
import { originOfRequest, type PublicOrigin } from '../../http/public-origin.ts'
import { randomHex } from '../../isolate/random-ids.ts'
import {
  type RouteVariables,
  requestIdOf,
  type TimelineVariables,
  traceOf,
  waitUntilOf,
} from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import type { SpanExporter } from './exporter.ts'
import type { Span } from './span.ts'

export interface TraceRequestsOptions {
  readonly exporter: SpanExporter
  /** Returns the origin under which the client reached the gateway. Default: that of the request's URL. */
  readonly publicOriginOf?: (c: Context) => PublicOrigin
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

type Environment = { Variables: Partial<RouteVariables & TimelineVariables> }

/** The OpenTelemetry value for other methods. The names of their spans begin with `HTTP`. */
const OTHER_METHOD = '_OTHER'
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
const SPAN_ID_BYTES = 8
const SERVER_ERROR = 500

/**
 * Exports a server span for each request with a sampled trace, and a span for each stage that took
 * time. The origin receives the server span as its parent. Attributes follow the OpenTelemetry
 * conventions for HTTP, but without path, query, address or subject. Comes after `requestId` and
 * before `audit`, which sets the timeline of the stages. A caller's `traceparent` with the sampled
 * flag is honoured; the exporter bounds how many spans an isolate sends.
 *
 * @example
 * ```ts
 * const exporter = createSpanExporter({ url: 'https://collector.example/v1/traces' })
 * app.use(requestId(), traceRequests({ exporter }), audit({ sink }))
 * ```
 */
export const traceRequests = ({
  exporter,
  publicOriginOf = originOfRequest(),
  now = () => Date.now(),
}: TraceRequestsOptions) =>
  createMiddleware<Environment>(async function traceRequests(c, next) {
    if (!traceOf(c).isSampled) return next()
    const startMs = now()
    await next()
    exporter.export(createSpans(c, publicOriginOf(c).scheme, startMs, now()), waitUntilOf(c))
  })

function createSpans(
  c: Context<Environment>,
  scheme: string,
  startMs: number,
  endMs: number,
): Span[] {
  const { traceId, spanId, parentSpanId, tracestate } = traceOf(c)
  const route = c.get('portcullis.route')?.path
  const method = METHODS.has(c.req.method) ? c.req.method : OTHER_METHOD
  const named = method === OTHER_METHOD ? 'HTTP' : method
  const { status } = c.res
  const timeline = c.get('portcullis.timeline')
  const reason = reasonOf(c.error, timeline?.current())
  const spans: Span[] = [
    {
      traceId,
      spanId,
      parentSpanId,
      tracestate,
      startMs,
      endMs,
      kind: 'server',
      name: route === undefined ? named : `${named} ${route}`,
      attributes: {
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': status,
        'url.scheme': scheme,
        'error.type': status >= SERVER_ERROR ? (c.error ? reason : String(status)) : undefined,
        'portcullis.request_id': requestIdOf(c),
        'portcullis.decision': decisionOf(c.error, timeline?.current()),
        'portcullis.reason': reason,
      },
      isError: status >= SERVER_ERROR,
    },
  ]
  // Stages follow each other without a gap, so their durations determine when each began.
  let stageMs = startMs
  for (const [name, tookMs] of Object.entries(timeline?.durations(endMs) ?? {})) {
    const began = stageMs
    stageMs += tookMs
    if (tookMs === 0) continue
    spans.push({
      traceId,
      spanId: randomHex(SPAN_ID_BYTES),
      parentSpanId: spanId,
      tracestate,
      kind: 'internal',
      name,
      startMs: began,
      endMs: stageMs,
      attributes: {},
      isError: false,
    })
  }
  return spans
}
