/** Short bodies that are read before their response begins: the response is then complete. */

/** The longest body that may delay its header until it has arrived, in bytes. */
const MAX_EARLY_BYTES = 16_384
/** What workerd reads at once into a buffer of its own, which costs less CPU than a buffer of the reader. */
const CHUNK_BYTES = 4_096

const complete = new WeakSet<Response>()

/** Reports whether {@link readEarly} has read the whole body: nothing has to watch it. */
export const isRead = (response: Response): boolean => complete.has(response)

/**
 * Returns a copy whose headers can be changed. A short body of known length is read first: if it arrives
 * before `wait` calls its argument, the response is complete. A pipe of the platform costs more CPU than
 * some of the stages. A body that fails breaks off after its header, as every other does.
 *
 * `isFramed`: the platform received the body over HTTP, which ends it after `Content-Length` bytes. The body of any
 * other response can be longer, or fail later, so its end is read too.
 */
export async function readEarly(
  answer: Response,
  isFramed: boolean,
  wait: (late: () => void) => void,
): Promise<Response> {
  const length = answer.headers.get('Content-Length') ?? ''
  const bytes = /^\d+$/.test(length) ? Number(length) : 0
  const reader = bytes > 0 && bytes <= MAX_EARLY_BYTES ? readerOf(answer, bytes) : undefined
  if (reader === undefined) return new Response(answer.body, answer)
  // One more than declared: a longer chunk is not the whole body.
  const read = () => reader.read(new Uint8Array(bytes + 1))
  const reads = [read()]
  const body = await new Promise<Bytes | undefined>((resolve) => {
    const late = () => resolve(undefined)
    wait(late)
    reads[0]
      ?.then(async ({ value }) => {
        if (value?.byteLength !== bytes) return late()
        if (isFramed) return resolve(value)
        const end = read()
        reads.push(end)
        resolve((await end).done ? value : undefined)
      })
      .catch(late)
  })
  if (body !== undefined) {
    const whole = new Response(body, answer)
    complete.add(whole)
    return whole
  }
  const cancel = (reason: unknown) => reader.cancel(reason)
  return new Response(streamOf({ read: () => reads.shift() ?? read(), cancel }), answer)
}

type Bytes = Uint8Array<ArrayBuffer>
type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

/** A reader into a given buffer. A default reader is one too: it ignores the buffer. */
interface BufferReader {
  read(buffer: Bytes): Promise<ReadableStreamReadResult<Bytes>>
  cancel(reason: unknown): Promise<void>
}

/** Returns what the reader reads as a stream. Calls `failed` before the stream fails, unless its consumer cancels it. */
export function streamOf(
  reader: Reader,
  failed?: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  let isCancelled = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          if (!isCancelled) failed?.(error)
          throw error
        })
        if (isCancelled) return
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel(reason) {
        isCancelled = true
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Undefined if the runtime may decode the bytes while they are read: then their number is not the declared one; and
 * for a body from 4 KiB that JavaScript creates in chunks of its own.
 */
function readerOf({ body, headers }: Response, bytes: number): BufferReader | undefined {
  try {
    if (headers.has('Content-Encoding')) return undefined
    return bytes < CHUNK_BYTES ? body?.getReader() : body?.getReader({ mode: 'byob' })
  } catch {
    return undefined
  }
}
