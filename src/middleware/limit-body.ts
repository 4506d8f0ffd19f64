/** Limits the size of request bodies without reading them first. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import { Denied } from '../errors.ts'
import { drain, readChunks } from '../http/drain.ts'
import { dropResponse } from '../http/replaced-response.ts'
import { IS_WORKERS } from '../isolate/platform.ts'
import type { BodyVariables } from './context.ts'
import { readEarlier } from './early-body.ts'
import { keepReceivedHeaders, receivedHeaders } from './request-headers.ts'

export interface LimitBodyOptions {
  /** Largest body, in bytes as sent, before any `Content-Encoding` is decoded. */
  readonly maxBytes: number
  /** Also limits what `c.req` reads, such as `c.req.json()`. Default: only `bodyOf` is limited. */
  readonly ofRequest?: boolean
}

/** RFC 9110 section 8.6. Numbers of fifteen digits are exact. */
const CONTENT_LENGTH = /^\d{1,15}$/

/** workerd ends a body at its `Content-Length`, so such a body need not pass through JavaScript. */
const PLATFORM_KEEPS_LENGTH = IS_WORKERS

type Bytes = ReadableStream<Uint8Array>
type Environment = { Variables: BodyVariables }

/**
 * Sets `body`: the request's body as a stream of at most `maxBytes`, or null. Throws `Denied`
 * (`payload_too_large`) at once for a `Content-Length` above the limit. Any other body is counted:
 * the first byte above the limit ends the stream with the same `Denied`, and the response is 413,
 * even if the reader of the stream failed with another error. The rest is drained, see {@link
 * drain}.
 *
 * A body that a middleware has read before with `c.req.text()` or the like is bounded as well. If its bytes
 * are lost, `OutOfOrder` is thrown.
 *
 * GET and HEAD must not have a body: `Denied` (`malformed_request`), because servers disagree on
 * its meaning (RFC 9110 section 9.3.1). Does NOT decode `Content-Encoding` and does not buffer.
 *
 * @example
 * ```ts
 * app.post('/orders', limitBody({ maxBytes: 65_536 }), (c) => store(bodyOf(c)))
 * ```
 */
export const limitBody = ({
  maxBytes,
  ofRequest = false,
}: LimitBodyOptions): MiddlewareHandler<Environment> => {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
    throw new RangeError(`limitBody: maxBytes must be an integer of at least 0, not ${maxBytes}`)

  async function limit(c: Context<Environment>, next: Next, body: Bytes): Promise<void> {
    let refusal: Denied | undefined
    let passed: Bytes = body
    try {
      const length = contentLength(receivedHeaders(c))
      if (length === 0) {
        c.set('portcullis.body', null)
        return await next()
      }
      if (c.req.method === 'GET' || c.req.method === 'HEAD')
        throw new Denied({ code: 'malformed_request', check: 'unexpected_body' })
      if (length !== undefined && length > maxBytes)
        throw new Denied({ code: 'payload_too_large', maxBytes })
      const earlier = readEarlier(c, body, 'limitBody')
      if (earlier !== undefined) {
        const bytes = await earlier
        if (bytes.byteLength > maxBytes) throw new Denied({ code: 'payload_too_large', maxBytes })
        c.set('portcullis.body', bytes)
        return await next()
      }
      if (length === undefined || !PLATFORM_KEEPS_LENGTH) {
        passed = counted(body, maxBytes, (denied) => {
          refusal = denied
        })
        if (ofRequest) passed = replaceRequestBody(c, passed)
      }
      c.set('portcullis.body', passed)
      await next()
      // The reader may have failed with its own error, or have responded before the end.
      if (refusal !== undefined && c.error !== refusal) {
        dropResponse(c)
        throw refusal
      }
      if (c.error !== undefined) await letGo(passed)
    } catch (error) {
      await letGo(passed)
      throw error
    }
  }

  return function limitBody(c, next) {
    const { body } = c.req.raw
    if (body !== null) return limit(c, next, body)
    c.set('portcullis.body', null)
    return next()
  }
}

/** Replaces the request by one with this body. Returns the body as that request has it. */
function replaceRequestBody(c: Context<Environment>, body: Bytes): Bytes {
  // Required for a stream, and missing in the types of Workers.
  const init: RequestInit & { readonly duplex: 'half' } = { body, duplex: 'half' }
  const request = copyOf(c.req.raw, init)
  keepReceivedHeaders(c, request)
  c.req.raw = request
  return request.body ?? body
}

/** Next passes a proxy of a request, whose parts can be copied: the constructor of Node 24 does not accept it. */
function copyOf(request: Request, init: RequestInit): Request {
  try {
    return new Request(request, init)
  } catch {
    const { url, method, headers, signal } = request
    return new Request(url, { method, headers, signal, ...init })
  }
}

/** Undefined if the framing determines the end of the body. */
function contentLength(received: ReadonlyMap<string, string>): number | undefined {
  const declared = received.get('content-length')
  // RFC 9112 section 6.1: Transfer-Encoding overrides a Content-Length.
  if (declared === undefined || received.has('transfer-encoding')) return undefined
  if (!CONTENT_LENGTH.test(declared))
    throw new Denied({ code: 'malformed_request', check: 'content_length' })
  return Number(declared)
}

function counted(body: Bytes, maxBytes: number, onExcess: (denied: Denied) => void): Bytes {
  const reader = readChunks(body)
  let bytes = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done || value === undefined) return controller.close()
        bytes += value.byteLength
        if (bytes <= maxBytes) return controller.enqueue(value)
        const denied = new Denied({ code: 'payload_too_large', maxBytes })
        onExcess(denied)
        // Before the reader gets the error: its response would close the connection.
        await drain(reader)
        controller.error(denied)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Drains and cancels a stream without a reader. A stream with a reader ends with its reader. */
async function letGo(stream: Bytes | null): Promise<void> {
  if (stream !== null && !stream.locked) await drain(readChunks(stream))
}
