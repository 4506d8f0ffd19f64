/** Guards an event stream of an MCP server while it passes to its client. */
import { DeadlineExceeded, withDeadline } from '../../isolate/timers.ts'
import { createEventReader, eventText, type ServerSentEvent } from './event-stream.ts'

export interface EventTerms {
  readonly maxMessageBytes: number
  /**
   * Returns a message as the client may receive it. Undefined: it is left out. Throws if the stream
   * must end.
   */
  readonly message: (text: string) => Promise<string | undefined>
  /** Binds the id of an event, which a client sends back to resume the stream. */
  readonly bindEvent: (id: string) => Promise<string>
}

/**
 * Returns a function that guards the next part of an event stream. It writes all events anew, so
 * that every reader sees the fields that were guarded. Events of other types than `message` are left
 * out. Throws for text that is not UTF-8, and for an event above the maximum size.
 */
export function createEventGuard({ maxMessageBytes, message, bindEvent }: EventTerms) {
  const read = createEventReader(maxMessageBytes)
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

  async function guarded(event: ServerSentEvent): Promise<string> {
    const { type, data, id } = event
    if (type !== undefined && type !== '' && type !== 'message') return ''
    const passed = data === undefined || data === '' ? data : await message(data)
    // Without data, clients see no event, but the id of a later resumption counts.
    if (passed === undefined && data !== undefined && id === undefined) return ''
    return eventText({
      ...event,
      data: passed,
      id: id === undefined || id === '' ? id : await bindEvent(id),
    })
  }

  return async function guardEvents(bytes: Uint8Array): Promise<string> {
    let text = ''
    for (const event of read(decoder.decode(bytes, { stream: true }))) text += await guarded(event)
    return text
  }
}

export interface StreamTerms {
  readonly guard: (bytes: Uint8Array) => Promise<string>
  /**
   * How long the first event may take before the client gets the head of the response without it, in
   * milliseconds.
   */
  readonly headMs: number
  /**
   * Returns the last event of a stream that cannot continue. Empty: it ends without one. Undefined: it
   * breaks off.
   */
  readonly lastEvent: (cause: unknown) => string | undefined
}

/**
 * Returns the stream with guarded events. Rejects if the first event cannot pass, so that the client
 * gets an error in place of a stream. The stream of the server is then cancelled, as it is when a later
 * event cannot pass.
 */
export async function guardedStream(
  source: ReadableStream<Uint8Array>,
  { guard, headMs, lastEvent }: StreamTerms,
): Promise<ReadableStream<Uint8Array>> {
  const reader = source.getReader()
  const encoder = new TextEncoder()

  /** Returns the next events. Undefined: the stream has ended. */
  async function next(): Promise<string | undefined> {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return undefined
      const text = await guard(value)
      if (text !== '') return text
    }
  }

  const leave = (): void => void reader.cancel().catch(() => {})
  let first: Promise<string | undefined> | undefined = next()
  try {
    await withDeadline(first, headMs)
  } catch (error) {
    if (!(error instanceof DeadlineExceeded)) {
      leave()
      throw error
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await (first ?? next())
          first = undefined
          if (text === undefined) controller.close()
          else controller.enqueue(encoder.encode(text))
        } catch (error) {
          leave()
          const last = lastEvent(error)
          if (last === undefined) throw error
          if (last !== '') controller.enqueue(encoder.encode(last))
          controller.close()
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
