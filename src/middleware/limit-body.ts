/** Caps the size of request bodies without reading them first. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { BodyVariables } from '../context.ts'
import { Denied } from '../errors.ts'
import { chunksOf, linger } from '../linger.ts'
import { receivedHeaders } from '../request-headers.ts'

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

type Bytes = ReadableStream<Uint8Array>
type Environment = { Variables: BodyVariables }

/**
 * Sets `body`: the request's body as a stream that gives at most `maxBytes`, or null. Throws
 * `Denied` (`body_too_large`) at once for a `Content-Length` above the cap. Any other body streams
 * on and is counted as it passes: one byte too many ends it with that same `Denied`, whoever was
 * reading, and the answer is 413 even where the reader failed in a way of its own.
 *
 * GET and HEAD have no body here: `Denied` (`request_malformed`), since no two servers agree on
 * what one would mean (RFC 9110 section 9.3.1). What is left of a refused body is read for a
 * moment and then cancelled: see `linger`.
 *
 * Does NOT undo `Content-Encoding` and does not buffer. Throws a `RangeError` when built with a
 * cap that is not a whole number of bytes.
 *
 * @example
 * ```ts
 * app.post('/orders', limitBody({ maxBytes: 65_536 }), (c) => store(bodyOf(c)))
 * ```
 */
export const limitBody = ({ maxBytes }: LimitBodyOptions): MiddlewareHandler<Environment> => {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
    throw new RangeError(`limitBody: maxBytes must be a whole number, not ${maxBytes}`)

  async function limit(c: Context<Environment>, next: Next, body: Bytes): Promise<void> {
    let refusal: Denied | undefined
    let passed: Bytes = body
    try {
      const length = contentLength(receivedHeaders(c))
      if (length === 0) {
        c.set('body', null)
        return await next()
      }
      if (c.req.method === 'GET' || c.req.method === 'HEAD')
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
        c.res.body?.cancel().catch(() => undefined)
        // Hono would carry the headers of this answer over to the next.
        c.res = undefined
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
    c.set('body', null)
    return next()
  }
}

/** The declared length; undefined where the body's end is told by its framing. */
function contentLength(received: ReadonlyMap<string, string>): number | undefined {
  const declared = received.get('content-length')
  // RFC 9112 section 6.1: Transfer-Encoding overrides a length that stands beside it.
  if (declared === undefined || received.has('transfer-encoding')) return undefined
  if (!CONTENT_LENGTH.test(declared))
    throw new Denied({ code: 'request_malformed', check: 'content_length' })
  return Number(declared)
}

/** Passes chunks on as they are asked for, and ends with a `Denied` past `maxBytes`. */
function counted(body: Bytes, maxBytes: number, onExcess: (denied: Denied) => void): Bytes {
  const reader = chunksOf(body)
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
        // Before the reader hears of it: its answer would end the connection.
        await linger(reader)
        controller.error(denied)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Lets go of a stream that nobody reads; one that is being read ends with its reader. */
async function letGo(stream: Bytes | null): Promise<void> {
  if (stream !== null && !stream.locked) await linger(chunksOf(stream))
}
