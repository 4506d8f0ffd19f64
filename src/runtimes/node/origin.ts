/** Calls of the origin over undici. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Denied, Unavailable } from '../../errors.ts'
import {
  type Origin,
  type OriginRequest,
  parseBase,
  targetBelow,
  UNWATCHED_MS,
} from '../../origin/origin.ts'
import type { Fault } from '../../problems/reasons.ts'
import { fieldsOf } from './fields.ts'
import {
  isLost,
  isRepeatable,
  type OriginConnection,
  originConnections,
} from './origin-connections.ts'
import { OriginResponse } from './origin-response.ts'
import { isShortage } from './system/descriptors.ts'
import { isAccepted, UpgradedResponse } from './upgraded-response.ts'
import { Upload } from './upload.ts'

export interface NodeOrigin extends Origin {
  /** Closes the connections, after the responses in progress. */
  close(): Promise<void>
}

/**
 * `identity` of HTTP/1.1 before RFC 7230 is no coding. undici keeps white space behind the value. After a space
 * it decodes the chunks, and after a tab it does not.
 */
const CODING = /^(?:chunked|identity) *$/i
/** Fetch standard: responses with these statuses have no body. */
const NULL_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Creates the port to an origin. It keeps connections, returns redirects, and neither decodes bodies nor
 * adds headers, except `Host` and the framing. It passes on chunks as they come, in both directions, and
 * drops trailers. A request body that fails ends the connection, so that the origin does not read what
 * it has as the whole. A request that may be repeated is sent once more, on a new connection, if it was
 * sent on a kept one that the origin has ended.
 *
 * `send` throws as that of `createOrigin`. Throws `Misconfigured` for an invalid URL.
 */
export function createNodeOrigin({ url }: { readonly url: string }): NodeOrigin {
  const base = new URL(parseBase(url))
  const basePath = base.pathname === '/' ? '' : base.pathname
  const connections = originConnections(base.origin)
  return {
    async send(request) {
      const path = basePath + targetBelow(request)
      const upgrade = request.headers.get('upgrade')
      const headers = upgrade === undefined ? framed(request) : withoutUpgrade(request.headers)
      return new Promise<Response>((resolve, reject) => {
        const { body } = request
        const upload = body instanceof ReadableStream ? new Upload(body) : undefined
        const options = {
          path,
          method: request.incoming.method as Dispatcher.HttpMethod,
          headers,
          ...(upgrade !== undefined && { upgrade }),
          // undici also reads an async iterable, which its types omit.
          body: (upload ?? body) as Uint8Array | null,
        }
        const repeat = isRepeatable(options)
          ? (again: OriginCall) => connections.dispatchAlone(options, again)
          : undefined
        const call = new OriginCall(request, upload, { resolve, reject, repeat })
        connections.dispatch({ ...options, selected: call.selected }, call)
      })
    },
    close: connections.close,
  }
}

interface Outcome {
  readonly resolve: (response: Response) => void
  readonly reject: (reason: unknown) => void
  /** Sends the request once more. Undefined: it may have been handled. */
  readonly repeat: ((call: OriginCall) => void) | undefined
}

/** One call: settles when the headers of the response have arrived. */
class OriginCall implements Dispatcher.DispatchHandler {
  #connection: OriginConnection | undefined
  readonly #request: OriginRequest
  readonly #upload: Upload | undefined
  readonly #resolve: Outcome['resolve']
  readonly #reject: Outcome['reject']
  /** Undefined: the call must not be repeated, or was repeated already. */
  #repeat: Outcome['repeat']
  #isReused = false
  #timer: ReturnType<typeof setTimeout>
  #watched: AbortSignal | undefined
  #controller: Dispatcher.DispatchController | undefined
  #response: OriginResponse | undefined
  #aborted: Error | undefined

  constructor(
    request: OriginRequest,
    upload: Upload | undefined,
    { resolve, reject, repeat }: Outcome,
  ) {
    this.#request = request
    this.#upload = upload
    this.#resolve = resolve
    this.#reject = reject
    this.#repeat = repeat
    this.#timer = setTimeout(this.#watch, Math.min(UNWATCHED_MS, request.timeoutMs))
  }

  readonly selected = (connection: OriginConnection) => {
    this.#connection = connection
  }

  readonly #watch = () => {
    const { incoming, timeoutMs } = this.#request
    this.#timer = setTimeout(
      () => this.#abort(new Unavailable('origin', 'timeout')),
      timeoutMs - Math.min(UNWATCHED_MS, timeoutMs),
    )
    this.#watched = incoming.signal
    this.#watched.addEventListener('abort', this.#leave)
    if (this.#watched.aborted) this.#leave()
  }

  readonly #leave = () =>
    this.#abort(new Denied({ code: 'malformed_request', check: 'client_gone' }))

  /** Rejects at once: a call may wait for a connection that the origin does not accept. */
  #abort(reason: Error): void {
    this.#settle()
    this.#reject(reason)
    this.#aborted = reason
    this.#upload?.stop()
    this.#controller?.abort(reason)
  }

  #settle(): void {
    clearTimeout(this.#timer)
    this.#watched?.removeEventListener('abort', this.#leave)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#isReused = this.#connection?.carry() ?? false
    // The call was aborted before it had a connection.
    if (this.#aborted !== undefined) controller.abort(this.#aborted)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status >= 100 && status < 200) return
    this.#settle()
    const coding = headers['transfer-encoding']
    // undici reads the chunks behind another coding as the body, or drops the name of the coding.
    if (status < 100 || status > 599 || (coding !== undefined && !CODING.test(coding))) {
      this.#reject(new Unavailable('origin', 'malformed'))
      controller.abort(new Error('no HTTP status, or an unknown transfer coding'))
      return
    }
    const hasBody = this.#request.incoming.method !== 'HEAD' && !NULL_BODY.has(status)
    this.#response = new OriginResponse(status, fieldsOf(headers), hasBody, controller)
    this.#resolve(this.#response as unknown as Response)
  }

  onRequestUpgrade(
    _: Dispatcher.DispatchController,
    _status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ): void {
    this.#settle()
    const fields = fieldsOf(headers)
    if (isAccepted(fields, this.#request.headers.get('sec-websocket-key'))) {
      this.#resolve(new UpgradedResponse(socket, fields) as unknown as Response)
    } else {
      socket.destroy()
      this.#reject(new Unavailable('origin', 'malformed'))
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#response?.data(chunk)
  }

  onResponseEnd(): void {
    // The origin may answer before it has read the whole body.
    this.#upload?.stop()
    this.#response?.end()
  }

  onResponseError(_: Dispatcher.DispatchController, cause: Error): void {
    const repeat = this.#repeat
    this.#repeat = undefined
    const isEnded = this.#response !== undefined || this.#aborted !== undefined
    if (repeat !== undefined && this.#isReused && !isEnded && isLost(cause)) {
      this.#controller = undefined
      this.#connection = undefined
      repeat(this)
      return
    }
    this.#settle()
    this.#upload?.stop()
    const isKnown = cause instanceof Denied || cause instanceof Unavailable
    if (this.#response !== undefined) this.#response.fail(cause)
    else this.#reject(isKnown ? cause : unavailable(cause))
  }
}

/** Without a free descriptor the origin was not called: nothing is known about it. */
const unavailable = (cause: Error): Unavailable =>
  isShortage(cause)
    ? new Unavailable('gateway', 'overloaded', { cause, retryAfterSeconds: 1 })
    : new Unavailable('origin', classifyFault(cause), { cause })

/** undici reports it instead of a fault of the head that follows `Content-Length`. */
const NOT_ITS_LENGTH = 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
/** What undici reports about a response that no request fits, such as 101 without an upgrade. */
const UNFIT: ReadonlySet<string> = new Set(['bad response', 'bad upgrade'])

/** An origin whose response is not readable is reachable: a caller may be able to provoke such responses. */
function classifyFault({ code, name, message }: NodeJS.ErrnoException): Fault {
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'too_large'
  const isUnfit = code === 'UND_ERR_SOCKET' && UNFIT.has(message)
  // The end of the connection inside the head is an interruption.
  const isUnreadable = name === 'HTTPParserError' && !message.includes('Invalid EOF state')
  return isUnfit || isUnreadable || code === NOT_ITS_LENGTH ? 'malformed' : 'unreachable'
}

/** Adds the length of a stream that the client declared: Node has checked it. undici knows other lengths. */
function framed({ incoming, headers, body }: OriginRequest): ReadonlyMap<string, string> {
  const declared = incoming.headers.get('content-length')
  if (declared === null || !(body instanceof ReadableStream)) return headers
  return new Map(headers).set('content-length', declared)
}

/** undici writes this field itself. */
function withoutUpgrade(headers: ReadonlyMap<string, string>): Map<string, string> {
  const others = new Map(headers)
  others.delete('upgrade')
  return others
}
