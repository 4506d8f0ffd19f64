/** Short bodies that are read before their response begins: the response is then complete. */

/** The longest body that may delay its header until it has arrived, in bytes. */
const MAX_EARLY_BYTES = 16_384
/** What workerd reads at once without memory of ours, which costs less CPU than with it. */
const CHUNK_BYTES = 4_096

type Chunk = ReadableStreamReadResult<Uint8Array<ArrayBuffer>>

const complete = new WeakSet<Response>()

/** Reports whether {@link readEarly} has read the whole body: nothing has to watch it. */
export const isRead = (response: Response): boolean => complete.has(response)

/**
 * Returns a copy whose headers can be changed. A short body of known length is read first: if it arrives
 * before `wait` calls its argument, the response is complete. A pipe of the platform costs more CPU than
 * some of the stages. A body that fails breaks off after its header, as every other does.
 */
export async function readEarly(
  answer: Response,
  wait: (late: () => void) => void,
): Promise<Response> {
  const length = answer.headers.get('Content-Length') ?? ''
  const bytes = /^\d+$/.test(length) ? Number(length) : 0
  const reader = bytes > 0 && bytes <= MAX_EARLY_BYTES ? bytesOf(answer, bytes) : undefined
  if (reader === undefined) return new Response(answer.body, answer)
  // One more than declared: a longer body is not complete. A default reader ignores it.
  const read = () => reader.read(new Uint8Array(bytes + 1))
  const reading = read()
  const chunk = await new Promise<Chunk | undefined>((resolve) => {
    const late = () => resolve(undefined)
    wait(late)
    reading.then(resolve, late)
  })
  if (chunk?.value?.byteLength === bytes) {
    const whole = new Response(chunk.value, answer)
    complete.add(whole)
    return whole
  }
  const chunks = [reading]
  const cancel = (reason: unknown) => reader.cancel(reason)
  return new Response(streamOf({ read: () => chunks.pop() ?? read(), cancel }), answer)
}

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

/** Returns what the reader reads as a stream. Calls `failed` before the stream fails. */
export const streamOf = (
  reader: Reader,
  failed?: (error: unknown) => void,
): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          failed?.(error)
          controller.error(error)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )

/**
 * Undefined for a body that JavaScript creates in chunks of its own, and if the runtime may decode the bytes
 * while they are read: then their number is not the declared one.
 */
function bytesOf({ body, headers }: Response, bytes: number): ReadableStreamBYOBReader | undefined {
  try {
    const options = bytes < CHUNK_BYTES ? {} : { mode: 'byob' }
    return headers.has('Content-Encoding')
      ? undefined
      : body?.getReader(options as { mode: 'byob' })
  } catch {
    return undefined
  }
}
