/** The body of a request of Node's server as a web stream. */
import type { IncomingMessage } from 'node:http'
import { Denied } from '../../errors.ts'

/**
 * Returns the body as a stream, which reads the connection no faster than its own reader. It fails with
 * `Denied` (`malformed_request`) if the client disconnects before the end.
 *
 * After a cancellation, bytes that still arrive are discarded, so that the client can read the response
 * to its request. The adapter of Node destroys the connection instead, and throws in an event listener,
 * which ends the process, if it receives bytes after that.
 */
export const bodyStream = (incoming: IncomingMessage): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(new RequestBody(incoming), { highWaterMark: 0 })

type Controller = ReadableStreamDefaultController<Uint8Array>

class RequestBody implements UnderlyingSource<Uint8Array> {
  readonly #incoming: IncomingMessage
  /** Undefined before the first read, and after the end: such a controller throws if it is used. */
  #stream: Controller | undefined

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming
  }

  pull(stream: Controller): void {
    if (this.#stream === undefined) this.#begin(stream)
    this.#incoming.resume()
  }

  cancel(): void {
    this.#end()
    this.#incoming.resume()
  }

  #begin(stream: Controller): void {
    const incoming = this.#incoming
    this.#stream = stream
    if (incoming.readableEnded) this.#complete()
    else if (incoming.destroyed) this.#fail()
    else
      incoming
        .on('data', this.#receive)
        .once('end', this.#complete)
        .once('error', this.#fail)
        .once('close', this.#fail)
  }

  /** Returns the controller and removes it, so that later events have no effect. */
  #end(): Controller | undefined {
    const stream = this.#stream
    this.#stream = undefined
    this.#incoming.off('data', this.#receive)
    return stream
  }

  readonly #receive = (chunk: Buffer): void => {
    this.#incoming.pause()
    this.#stream?.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength))
  }

  readonly #complete = (): void => this.#end()?.close()

  readonly #fail = (): void =>
    this.#end()?.error(new Denied({ code: 'malformed_request', check: 'client_gone' }))
}
