/** A response of the origin that passes to the client without a web stream, unless a stage reads it. */
import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { OpenStream } from '../../streams/open-streams.ts'
import { breakOff } from './break-off.ts'
import type { Fields } from './fields.ts'

/** Bytes that are kept while nothing reads them. More are read when they have been written. */
const MAX_HELD_BYTES = 65_536

/** Where the body goes. */
interface Sink {
  /** Returns false if it has enough; it then calls `resume` when it needs more. */
  data(chunk: Buffer): boolean
  end(): void
  fail(error: Error): void
}

/**
 * The response, whose fields can be changed. Its body is written to the client by {@link writeTo}, or
 * read as `body`, once. The origin is read no faster than that.
 */
export class OriginResponse implements Pick<Response, 'status' | 'body'> {
  readonly status: number
  readonly statusText = ''
  readonly headers: Fields
  readonly #hasBody: boolean
  readonly #controller: Dispatcher.DispatchController
  #sink: Sink | undefined
  #held: Buffer[] = []
  #heldBytes = 0
  #isEnded = false
  #error: Error | undefined
  #body: ReadableStream<Uint8Array> | undefined
  #open: OpenStream | undefined
  #passedBytes = 0

  constructor(
    status: number,
    headers: Fields,
    hasBody: boolean,
    controller: Dispatcher.DispatchController,
  ) {
    this.status = status
    this.headers = headers
    this.#hasBody = hasBody
    this.#controller = controller
  }

  get ok(): boolean {
    return this.status >= 200 && this.status <= 299
  }

  get body(): ReadableStream<Uint8Array> | null {
    if (!this.#hasBody) return null
    this.#body ??= this.#stream()
    return this.#body
  }

  /** Breaks the body off when the stream must end. */
  watchWith(stream: OpenStream): this {
    if (this.#hasBody) this.#open = stream
    return this
  }

  /** Writes the response. A body that is incomplete ends the connection of the client. */
  writeTo(outgoing: ServerResponse): void {
    outgoing.writeHead(this.status, this.headers.flat())
    if (this.#isEnded && this.#held.length <= 1) {
      outgoing.end(this.#held[0])
      return
    }
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) this.#controller.abort(new Error('the client has left'))
    })
    outgoing.on('drain', () => this.#controller.resume())
    // Otherwise the head of a silent event stream would wait for its first event.
    if (this.#held.length === 0) outgoing.flushHeaders()
    this.#passTo({
      data: (chunk) => outgoing.write(chunk),
      end: () => outgoing.end(),
      fail: () => breakOff(outgoing),
    })
  }

  /** The next three: what the origin has sent. */
  data(chunk: Buffer): void {
    // undici passes on an empty chunk whenever it resumes. A reader would read it, and resume at once, forever.
    if (chunk.length === 0) return
    // The content of a 205 must not follow its length of 0: the client would read it as a response.
    if (!this.#hasBody) return
    this.#passedBytes += chunk.length
    if (this.#sink !== undefined) {
      if (!this.#sink.data(chunk)) this.#controller.pause()
      return
    }
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
    if (this.#heldBytes >= MAX_HELD_BYTES) this.#controller.pause()
  }

  end(): void {
    this.#isEnded = true
    this.#open?.closed()
    this.#sink?.end()
  }

  fail(error: Error): void {
    // The first error counts: ending the call of the origin is another one.
    if (this.#error !== undefined) return
    this.#error = error
    this.#open?.closed()
    this.#sink?.fail(error)
  }

  #passTo(sink: Sink): void {
    this.#sink = sink
    if (!this.#isEnded && this.#error === undefined)
      this.#open?.opened({
        cut: (error) => {
          this.fail(error)
          this.#controller.abort(error)
        },
        bytes: () => this.#passedBytes,
      })
    let wantsMore = true
    for (const chunk of this.#held.splice(0)) wantsMore = sink.data(chunk)
    if (this.#error !== undefined) sink.fail(this.#error)
    else if (this.#isEnded) sink.end()
    else if (wantsMore) this.#controller.resume()
    else this.#controller.pause()
  }

  #stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (stream) =>
          this.#passTo({
            data(chunk) {
              stream.enqueue(chunk)
              return (stream.desiredSize ?? 0) > 0
            },
            end: () => stream.close(),
            fail: (error) => stream.error(error),
          }),
        pull: () => this.#controller.resume(),
        cancel: () => this.#controller.abort(new Error('the response is not needed')),
      },
      { highWaterMark: 0 },
    )
  }
}

Object.setPrototypeOf(OriginResponse.prototype, Response.prototype)
