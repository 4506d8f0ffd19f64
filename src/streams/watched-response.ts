/** A response with a body that can be broken off. */
import type { OpenStream } from './open-streams.ts'

/**
 * Returns a response with the same body, which breaks off when the stream must end. A body of known
 * length keeps its length, and a body that is broken off is shorter: it never looks complete.
 */
export function watchedResponse(response: Response, stream: OpenStream, method = 'GET'): Response {
  const { body, headers } = response
  const declared = headers.get('Content-Length')
  if (body === null || method === 'HEAD' || declared === '0') return response
  const bytes = declared === null ? undefined : Number(declared)
  const fixed = typeof FixedLengthStream === 'undefined' ? undefined : createPipe(bytes)
  if (fixed === undefined) return new Response(countedBody(body, stream), response)
  const source = stream.finishes ? countedBody(body, stream) : body
  const abort = new AbortController()
  // The platform moves the bytes. JavaScript runs only at the end.
  const closed = () => stream.closed()
  source.pipeTo(fixed.writable, { signal: abort.signal }).then(closed, closed)
  if (source === body) stream.opened({ cut: (error) => abort.abort(error) })
  return new Response(fixed.readable, response)
}

function createPipe(bytes: number | undefined): TransformStream<Uint8Array, Uint8Array> {
  return bytes !== undefined && Number.isSafeInteger(bytes) && bytes > 0
    ? new FixedLengthStream(bytes)
    : new IdentityTransformStream()
}

/** Counts the bytes, so that a download that makes progress may finish. */
function countedBody(
  body: ReadableStream<Uint8Array>,
  stream: OpenStream,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
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
