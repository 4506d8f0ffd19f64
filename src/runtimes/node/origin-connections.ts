/** The connections to an origin, and requests that are sent once more (RFC 9110 section 9.2.2). */
import { Client, type Dispatcher, Pool } from 'undici'
import { MAX_RESPONSE_HEADER_BYTES } from '../../origin/origin.ts'
import { originConnector } from './origin-socket.ts'

/** Idle connections end before common origins end them (Node: 5 s), so that few requests meet the end. */
const KEEP_ALIVE_MS = 4_000
/** How long before the `timeout` of an origin's `Keep-Alive` an idle connection ends. */
const KEEP_ALIVE_MARGIN_MS = 1_000
/** Other methods may have an effect twice, and a body cannot be sent twice. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/** Of undici, of the system, and of TLS: the connection has ended, or an idle one was found ended. */
const LOST: ReadonlySet<string | undefined> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/** undici gives the options of a request to the connection that it selects, but not the handler. */
export interface CallOptions extends Dispatcher.DispatchOptions {
  /** Called with the connection that will carry the request. */
  readonly selected: (connection: OriginConnection) => void
}

/** A connection, one at a time, as a client of undici. */
export class OriginConnection extends Client {
  #carriesFirst = true

  constructor(...options: ConstructorParameters<typeof Client>) {
    super(...options)
    this.on('connect', () => {
      this.#carriesFirst = true
    })
  }

  /** Returns whether the connection has carried another request before this one. */
  carry(): boolean {
    const isReused = !this.#carriesFirst
    this.#carriesFirst = false
    return isReused
  }

  override dispatch(
    options: Dispatcher.DispatchOptions & Partial<CallOptions>,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    options.selected?.(this)
    return super.dispatch(options, handler)
  }
}

export function originConnections(origin: string) {
  const options = {
    connect: originConnector(),
    // The deadline of each call is its caller's.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
  }
  const kept = new Pool(origin, {
    ...options,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
    factory: (url, forClient) => new OriginConnection(url, forClient),
  })
  const alone = new Pool(origin, { ...options, pipelining: 0 })
  return {
    dispatch: (request: CallOptions, handler: Dispatcher.DispatchHandler) =>
      void kept.dispatch(request, handler),
    /** Sends the request on a connection that carries no other one. */
    dispatchAlone: (request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) =>
      void alone.dispatch(request, handler),
    /** Closes the connections, after the responses in progress. */
    async close() {
      await Promise.all([kept.close(), alone.close()])
    },
  }
}

/** Whether a request may be sent again if its connection was lost before a response. */
export const isRepeatable = ({ method, body, upgrade }: Dispatcher.DispatchOptions): boolean =>
  REPEATABLE.has(method) && body === null && upgrade === undefined

export const isLost = (error: Error): boolean => LOST.has((error as NodeJS.ErrnoException).code)
