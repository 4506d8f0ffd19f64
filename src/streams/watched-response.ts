/** A response with a body that can be broken off. */
import type { OpenStream } from './open-streams.ts'

/**
 * Returns a response with the same body, which breaks off when the stream must end. A body of known
 * length keeps its length, and a body that is broken off is shorter: it never looks complete.
 */
export function watchedResponse(response: Response, stream: OpenStream, method = 'GET'): Response {
  const { body, headers } = response
  if (body === null || method === 'HEAD' || headers.get('Content-Length') === '0') return response
  if (typeof FixedLengthStream === 'undefined')
    return new Response(countedBody(body.getReader(), stream), response)
  if (stream.finishes) return pipedResponse(response, stream, countedBody(body.getReader(), stream))
  const abort = new AbortController()
  stream.opened({ cut: (error) => abort.abort(error) })
  return pipedResponse(response, stream, body, abort.signal)
}

/** The platform moves the bytes. JavaScript runs only at the end. */
function pipedResponse(
  response: Response,
  stream: OpenStream,
  source: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): Response {
  const bytes = Number(response.headers.get('Content-Length'))
  // A Worker behind a binding can state any text as length.
  const isLength = Number.isSafeInteger(bytes) && bytes > 0
  const pipe = isLength ? new FixedLengthStream(bytes) : new IdentityTransformStream()
  const closed = () => stream.closed()
  source.pipeTo(pipe.writable, signal && { signal }).then(closed, closed)
  return new Response(pipe.readable, response)
}

/** Counts the bytes, so that a download that makes progress may finish. */
function countedBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
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
