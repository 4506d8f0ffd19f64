/** The body of a request to the origin, as undici reads it. */

/**
 * A stream as an async iterable that can be stopped from outside. undici detects that the origin has
 * disconnected only when it writes a chunk. Without `stop`, a stalled upload would stay open until its
 * client disconnects.
 */
export class Upload implements AsyncIterableIterator<Uint8Array> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #isStopped = false

  /** Locks the stream. */
  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Rejects after {@link stop}: an upload that was stopped must not look complete. */
  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const { done, value } = await this.#reader.read()
    if (this.#isStopped) throw new Error('the upload was stopped')
    return done ? { done, value: undefined } : { done, value }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.stop()
    return { done: true, value: undefined }
  }

  /** Cancels the stream. Has no effect at its end. */
  stop(): void {
    this.#isStopped = true
    this.#reader.cancel().catch(() => {})
  }
}
