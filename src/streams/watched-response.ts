/** A response with a body that can be broken off. */
import type { OpenStream } from './open-streams.ts'

/** The longest body that may delay its header until it has arrived, in bytes. */
const MAX_EARLY_BYTES = 16_384
/** How long a header waits for such a body, in milliseconds. Most arrive together with their header. */
const EARLY_MS = 20

/**
 * Returns a response with the same body, which breaks off when the stream must end. A body of known
 * length keeps its length, and a body that is broken off is shorter: it never looks complete.
 *
 * On Workers, a short body of known length is read first. If it arrives within 20 ms, the response is
 * complete and nothing watches it: a pipe of the platform costs more CPU than some of the stages.
 */
export function watchedResponse(
  response: Response,
  stream: OpenStream,
  method = 'GET',
): Response | Promise<Response> {
  const { body, headers } = response
  const declared = headers.get('Content-Length')
  if (body === null || method === 'HEAD' || declared === '0') return response
  if (typeof FixedLengthStream === 'undefined')
    return new Response(countedBody(body.getReader(), stream), response)
  const bytes = Number(declared)
  // The runtime may decode the bytes while they are read: then their number is not the declared one.
  const isShort = isLength(bytes) && bytes <= MAX_EARLY_BYTES && !headers.has('Content-Encoding')
  const reader = isShort ? bytesOf(body) : undefined
  if (reader !== undefined) return earlyResponse(response, stream, reader, bytes)
  if (stream.finishes) return pipedResponse(response, stream, countedBody(body.getReader(), stream))
  const abort = new AbortController()
  stream.opened({ cut: (error) => abort.abort(error) })
  return pipedResponse(response, stream, body, abort.signal)
}

/** A Worker behind a binding can state any text as length. */
const isLength = (bytes: number): boolean => Number.isSafeInteger(bytes) && bytes > 0

/** Undefined for a body that JavaScript creates in chunks of its own. */
function bytesOf(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: 'byob' })
  } catch {
    return undefined
  }
}

async function earlyResponse(
  response: Response,
  stream: OpenStream,
  reader: ReadableStreamBYOBReader,
  bytes: number,
): Promise<Response> {
  // One more than declared: a longer body is not complete.
  const read = () => reader.read(new Uint8Array(bytes + 1))
  let first: ReturnType<typeof read> | undefined = read()
  // A body that fails breaks off after its header, as every other does.
  const chunk = await within(EARLY_MS, first)
  if (chunk?.value?.byteLength === bytes) return new Response(chunk.value, response)
  const rest = {
    read() {
      const next = first ?? read()
      first = undefined
      return next
    },
    cancel: (reason: unknown) => reader.cancel(reason),
  }
  return pipedResponse(response, stream, countedBody(rest, stream))
}

/** Resolves like `work`, or to undefined if it rejects or takes longer. A timer that fires late would cost CPU for nothing. */
function within<Value>(ms: number, work: Promise<Value>): Promise<Value | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    const settle = (value?: Value) => {
      clearTimeout(timer)
      resolve(value)
    }
    work.then(settle, () => settle())
  })
}

/** The platform moves the bytes. JavaScript runs only at the end. */
function pipedResponse(
  response: Response,
  stream: OpenStream,
  source: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): Response {
  const bytes = Number(response.headers.get('Content-Length'))
  const pipe = isLength(bytes) ? new FixedLengthStream(bytes) : new IdentityTransformStream()
  const closed = () => stream.closed()
  source.pipeTo(pipe.writable, signal && { signal }).then(closed, closed)
  return new Response(pipe.readable, response)
}

/** Counts the bytes, so that a download that makes progress may finish. */
function countedBody(
  reader: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>,
  stream: OpenStream,
): ReadableStream<Uint8Array> {
  let bytes = 0
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stream.opened({
          cut(error) {
            controller.error(error)
            reader.cancel(error).catch(() => {})
          },
          bytes: () => bytes,
        })
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (stream.ended !== undefined) return
          if (!done) {
            bytes += value.byteLength
            controller.enqueue(value)
            return
          }
          stream.closed()
          controller.close()
        } catch (error) {
          stream.closed()
          controller.error(error)
        }
      },
      cancel(reason) {
        stream.closed()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
