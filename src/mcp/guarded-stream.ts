/** Guards an event stream of an MCP server while it passes to its client. */
import { createEventReader, eventText, type ServerSentEvent } from './event-stream.ts'

export interface EventTerms {
  readonly maxMessageBytes: number
  /** Returns a message as the client may receive it. Throws if it may not receive it. */
  readonly message: (text: string) => Promise<string>
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
    return eventText({
      ...event,
      data: data === undefined || data === '' ? data : await message(data),
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
  /** The stream ends at this time, in milliseconds since the epoch. Undefined: never. */
  readonly endsAtMs: number | undefined
  readonly recheckMs: number
  /** Rejects if the caller may not continue. Undefined: no caller is known. */
  readonly readmit: (() => Promise<void>) | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Longest delay that `setTimeout` accepts, in milliseconds. */
const MAX_DELAY_MS = 2_147_483_647

/**
 * Returns the stream with guarded events. It ends when the token of the caller expires, and when the
 * next check does not admit the caller or cannot be made. The stream of the server is then cancelled.
 */
export function guardedStream(
  source: ReadableStream<Uint8Array>,
  { guard, endsAtMs, recheckMs, readmit, now }: StreamTerms,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  const encoder = new TextEncoder()
  let expiry: ReturnType<typeof setTimeout> | undefined
  let recheck: ReturnType<typeof setTimeout> | undefined
  let isEnded = false

  function stop(): void {
    isEnded = true
    clearTimeout(expiry)
    clearTimeout(recheck)
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        function end(): void {
          if (isEnded) return
          stop()
          controller.close()
          reader.cancel().catch(() => {})
        }
        function checkLater(readmit: () => Promise<void>): void {
          recheck = setTimeout(() => {
            readmit().then(() => isEnded || checkLater(readmit), end)
          }, recheckMs)
        }
        if (endsAtMs !== undefined)
          expiry = setTimeout(end, Math.min(Math.max(endsAtMs - now(), 0), MAX_DELAY_MS))
        if (readmit !== undefined) checkLater(readmit)
      },
      async pull(controller) {
        try {
          while (!isEnded) {
            const { done, value } = await reader.read()
            if (isEnded) return
            if (done) {
              stop()
              controller.close()
              return
            }
            const text = await guard(value)
            // The stream may have ended meanwhile.
            if (text === '' || isEnded) continue
            controller.enqueue(encoder.encode(text))
            return
          }
        } catch (error) {
          if (isEnded) return
          stop()
          reader.cancel().catch(() => {})
          throw error
        }
      },
      cancel(reason) {
        stop()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
