/** Calls of the origin over undici: as the global `fetch`, without what only browsers need. */
import { Agent, type Dispatcher } from 'undici'
import type { Fetches } from '../origin/origin.ts'

export interface OriginClient extends Fetches {
  /** Closes the connections, after the responses in progress. */
  close(): Promise<void>
}

/** Idle connections end before common origins end them (Node: 5 s), so that no request meets the end. */
const KEEP_ALIVE_MS = 4_000
/** Fetch standard: responses with these statuses have no body. */
const NULL_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Creates the client. It keeps connections, returns redirects, and neither decodes bodies nor adds
 * headers, except `Host` and the framing. It passes on chunks as they come, in both directions, and
 * drops trailers. A request body that fails ends the connection, so that the origin does not read
 * what it has as the whole. It has no timeouts and no retries: the caller's signal ends a call.
 */
export function createOriginClient(): OriginClient {
  const agent = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  })
  return {
    fetch: (url, { method = 'GET', headers, body, signal }) =>
      new Promise((resolve, reject) => {
        const { origin, pathname, search } = new URL(url)
        const options = {
          origin,
          path: pathname + search,
          method: method as Dispatcher.HttpMethod,
          headers: headers as Record<string, string>,
          // undici reads a stream as an async iterable.
          body: body as Uint8Array | null,
        }
        agent.dispatch(options, new ResponseHandler(method, signal, resolve, reject))
      }),
    close: () => agent.close(),
  }
}

class ResponseHandler implements Dispatcher.DispatchHandler {
  readonly #method: string
  readonly #signal: AbortSignal | null | undefined
  readonly #resolve: (response: Response) => void
  readonly #reject: (reason: unknown) => void
  #body: ReadableStreamDefaultController<Uint8Array> | undefined
  #stopWatching = () => {}

  constructor(
    method: string,
    signal: AbortSignal | null | undefined,
    resolve: (response: Response) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#method = method
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const signal = this.#signal
    if (signal == null) return
    const abort = () => controller.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
    this.#stopWatching = () => signal.removeEventListener('abort', abort)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return
    const headers = headersOf(controller.rawHeaders as readonly Buffer[])
    const hasBody = this.#method !== 'HEAD' && !NULL_BODY.has(status)
    const body = hasBody
      ? new ReadableStream<Uint8Array>(
          {
            start: (stream) => {
              this.#body = stream
            },
            pull: () => controller.resume(),
            cancel: (reason) => controller.abort(asError(reason)),
          },
          { highWaterMark: 0 },
        )
      : null
    if (hasBody) controller.pause()
    try {
      this.#resolve(new Response(body, { status, headers }))
    } catch (error) {
      controller.abort(asError(error))
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.enqueue(chunk)
    if ((this.#body?.desiredSize ?? 1) <= 0) controller.pause()
  }

  onResponseEnd(): void {
    this.#stopWatching()
    this.#body?.close()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#stopWatching()
    this.#body?.error(error)
    this.#reject(error)
  }
}

/** Header values are bytes: a text in UTF-8 must reach the client unchanged. */
function headersOf(raw: readonly Buffer[]): Headers {
  const headers = new Headers()
  for (let at = 0; at < raw.length; at += 2) {
    headers.append(String(raw[at]?.toString('latin1')), String(raw[at + 1]?.toString('latin1')))
  }
  return headers
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error('the response is not needed')
