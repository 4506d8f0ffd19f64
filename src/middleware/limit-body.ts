/** Caps the size of request bodies without reading them first. */
import { createMiddleware } from 'hono/factory'
import type { BodyVariables } from '../context.ts'
import { Denied } from '../errors.ts'

export interface LimitBodyOptions {
  /** Largest body, bytes as sent (before any `Content-Encoding` is undone); 0 forbids a body. */
  readonly maxBytes: number
}

/** RFC 9110 section 8.6; fifteen digits stay exact as a number. */
const CONTENT_LENGTH = /^\d{1,15}$/

/**
 * workerd ends a body at its `Content-Length`, and such a body keeps its length on the way to the
 * origin and never passes through JavaScript. Where the platform is another, every body is counted.
 */
const PLATFORM_KEEPS_LENGTH =
  typeof navigator !== 'undefined' && navigator.userAgent === 'Cloudflare-Workers'

/** A megabyte then takes few turns through JavaScript; read by 4 KB it costs four times as much. */
const READ_BYTES = 65_536

type Bytes = ReadableStream<Uint8Array>

/**
 * Sets `body`: the request's body as a stream that gives at most `maxBytes`, or null. Throws
 * `Denied` (`body_too_large`) at once for a `Content-Length` above the cap. Any other body streams
 * on and is counted as it passes: one byte too many ends it with that same `Denied`, whoever was
 * reading, and the answer is 413 even where the reader failed in a way of its own.
 *
 * GET and HEAD have no body here: `Denied` (`request_malformed`), since no two servers agree on
 * what one would mean (RFC 9110 section 9.3.1). After a refusal an unread body is cancelled.
 *
 * Does NOT undo `Content-Encoding` and does not buffer. Throws a `RangeError` when built with a
 * cap that is not a whole number of bytes.
 *
 * @example
 * ```ts
 * app.post('/orders', limitBody({ maxBytes: 65_536 }), (c) => store(bodyOf(c)))
 * ```
 */
export const limitBody = ({ maxBytes }: LimitBodyOptions) => {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
    throw new RangeError(`limitBody: maxBytes must be a whole number, not ${maxBytes}`)

  return createMiddleware<{ Variables: BodyVariables }>(async function limitBody(c, next) {
    const { body, headers, method } = c.req.raw
    if (body === null) {
      c.set('body', null)
      return next()
    }
    let refusal: Denied | undefined
    let passed: Bytes = body
    try {
      const length = contentLength(headers)
      if (length === 0) {
        c.set('body', null)
        return await next()
      }
      if (method === 'GET' || method === 'HEAD')
        throw new Denied({ code: 'request_malformed', check: 'unexpected_body' })
      if (length !== undefined && length > maxBytes)
        throw new Denied({ code: 'body_too_large', maxBytes })
      if (length === undefined || !PLATFORM_KEEPS_LENGTH) {
        passed = counted(body, maxBytes, (denied) => {
          refusal = denied
        })
      }
      c.set('body', passed)
      await next()
      // The reader may have failed in its own words, or have answered before the end.
      if (refusal !== undefined && c.error !== refusal) {
        cancel(c.res.body)
        // Hono would carry the headers of this answer over to the next.
        c.res = undefined
        throw refusal
      }
      if (c.error !== undefined) cancel(passed)
    } catch (error) {
      cancel(passed)
      throw error
    }
  })
}

/** The declared length; undefined where the body's end is told by its framing. */
function contentLength(headers: Headers): number | undefined {
  const declared = headers.get('Content-Length')
  // RFC 9112 section 6.1: Transfer-Encoding overrides a length that stands beside it.
  if (declared === null || headers.has('Transfer-Encoding')) return undefined
  if (!CONTENT_LENGTH.test(declared))
    throw new Denied({ code: 'request_malformed', check: 'content_length' })
  return Number(declared)
}

/** Passes chunks on as they are asked for, and ends with a `Denied` past `maxBytes`. */
function counted(body: Bytes, maxBytes: number, onExcess: (denied: Denied) => void): Bytes {
  const reader = readerOf(body)
  let bytes = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done || value === undefined) return controller.close()
        bytes += value.byteLength
        if (bytes <= maxBytes) return controller.enqueue(value)
        const denied = new Denied({ code: 'body_too_large', maxBytes })
        onExcess(denied)
        controller.error(denied)
        await reader.cancel(denied)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason: unknown): Promise<void>
}

/** Reads in large pieces where the stream knows how to. */
function readerOf(body: Bytes): Reader {
  try {
    const reader = body.getReader({ mode: 'byob' })
    return {
      read: () => reader.read(new Uint8Array(READ_BYTES)),
      cancel: (reason) => reader.cancel(reason),
    }
  } catch {
    return body.getReader()
  }
}

/** Lets go of a stream that nobody reads; one that is being read ends with its reader. */
function cancel(stream: ReadableStream | null): void {
  if (stream === null || stream.locked) return
  // A stream that has failed or ended already is what this is for.
  stream.cancel().catch(() => {})
}
