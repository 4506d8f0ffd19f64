/** Assigns each request an id and a span in the caller's trace. */

import { writeHeaders } from '../http/response-headers.ts'
import { randomHex, uuidV7 } from '../isolate/random-ids.ts'
import { isPassableTracestate, parseTraceparent } from '../observability/tracing/trace-context.ts'
import type { RequestIdVariables, TraceContext } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

/** Ids are written to logs, so other ids of clients are dropped. */
const CLIENT_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

const SPAN_ID_BYTES = 8
const TRACE_ID_BYTES = 16
/** Hex digits at the end of a trace id that decide whether it is sampled. */
const SAMPLE_DIGITS = 8

export interface RequestIdOptions {
  /**
   * Share of the traces that begin here and are sampled: 0 to 1. Default 1: with a lower ratio,
   * parent-based samplers behind this gateway record less.
   */
  readonly sampleRatio?: number | undefined
}

/**
 * Sets `requestId` (UUIDv7, RFC 9562), `parentRequestId` (the client's `X-Request-Id`, if its form
 * is allowed) and `trace`: the caller's W3C trace with a new span, or a new trace if there is none
 * or it is invalid. Writes `X-Request-Id` to the response. A client's ids are hints for
 * correlation, and never trusted to be unique.
 *
 * @example
 * ```ts
 * app.use(requestId())
 * app.get('/', (c) => c.text(requestIdOf(c)))
 * ```
 */
export const requestId = ({ sampleRatio = 1 }: RequestIdOptions = {}) =>
  createMiddleware<{ Variables: RequestIdVariables }>(async function requestId(c, next) {
    const id = uuidV7(Date.now())
    const received = receivedHeaders(c)
    const clientId = received.get('x-request-id')
    c.set('portcullis.requestId', id)
    c.set(
      'portcullis.parentRequestId',
      clientId !== undefined && CLIENT_REQUEST_ID.test(clientId) ? clientId : null,
    )
    c.set('portcullis.trace', continueTrace(received, sampleRatio))
    await next()
    writeHeaders(c, (headers) => headers.set('X-Request-Id', id))
  })

function continueTrace(received: ReadonlyMap<string, string>, sampleRatio: number): TraceContext {
  const parent = parseTraceparent(received.get('traceparent'))
  const traceId = parent?.traceId ?? randomHex(TRACE_ID_BYTES)
  const spanId = randomHex(SPAN_ID_BYTES)
  const isSampled = parent?.isSampled ?? (sampleRatio === 1 || sampleOf(traceId) < sampleRatio)
  const flags = parent?.flags ?? (isSampled ? '01' : '00')
  const tracestate = parent && received.get('tracestate')
  return {
    traceId,
    spanId,
    parentSpanId: parent?.spanId,
    isSampled,
    traceparent: `00-${traceId}-${spanId}-${flags}`,
    tracestate:
      tracestate !== undefined && isPassableTracestate(tracestate) ? tracestate : undefined,
  }
}

/** Returns a number from 0 to 1 that every service derives from the trace id. */
function sampleOf(traceId: string): number {
  return Number.parseInt(traceId.slice(-SAMPLE_DIGITS), 16) / 16 ** SAMPLE_DIGITS
}
