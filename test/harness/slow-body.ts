/** A body with a last part that is sent on the test's command. */

export interface SlowBody {
  readonly stream: ReadableStream<Uint8Array>
  /** Resolves when the receiver waits for the rest. */
  readonly pulled: Promise<void>
  /** Sends the rest. */
  end(): void
}

/**
 * Returns the JSON of `body` as a stream that sends its first byte at once. Undefined is an empty
 * body.
 */
export function slowly(body: object | undefined): SlowBody {
  const bytes = new TextEncoder().encode(JSON.stringify(body) ?? '')
  const pulled = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  let pulls = 0
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        pulls += 1
        if (pulls === 1 && bytes.length > 0) return controller.enqueue(bytes.slice(0, 1))
        pulled.resolve()
        await ended.promise
        if (bytes.length > 0) controller.enqueue(bytes.slice(1))
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, pulled: pulled.promise, end: ended.resolve }
}
