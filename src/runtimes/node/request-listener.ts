/** Connects a gateway to Node's HTTP server. */

import { once } from 'node:events'
import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as immediate } from 'node:timers/promises'
import { Denied } from '../../errors.ts'
import type { Gateway } from '../../gateway/create-gateway.ts'
import { uuidV7 } from '../../isolate/random-ids.ts'
import { problemOf } from '../../middleware/problem-handler.ts'
import { problemResponse } from '../../problems/problem.ts'
import type { BackgroundWork } from './background-work.ts'
import { breakOff, endSoon } from './break-off.ts'
import { closeAfter, isClosing } from './closing-connections.ts'
import type { Fields } from './fields.ts'
import { IncomingRequest } from './incoming-request.ts'
import { OriginResponse } from './origin-response.ts'
import { type StallWatch, watchStalls } from './stalled-clients.ts'
import { oncePerTurn } from './system/once-per-turn.ts'
import { type Relays, UpgradedResponse } from './upgraded-response.ts'
import type { LatestResponse, OnConnection } from './upgrades.ts'

/** After a response, a client may send the rest of its request for this long. */
const REST_MS = 500

/** What `c.env` is for a request. */
export interface NodeBindings {
  readonly incoming: IncomingMessage
  /** Whether the connection can become a WebSocket. */
  readonly canUpgrade: boolean
}

export interface Listeners {
  readonly request: RequestListener
  /** For requests with `Upgrade`, which Node hands over with their connection. */
  readonly upgrade: OnConnection
  /** Refuses `CONNECT`: the gateway has no tunnels (RFC 9110 section 9.3.6). */
  readonly connect: OnConnection
  /** Returns the number of requests and responses in progress, and of open WebSockets. */
  open(): number
  /** Ends connections on which nothing passes for `ms` milliseconds although something waits. */
  watchStalls(server: Server, ms: number, latest: LatestResponse): StallWatch
  /** Closes all WebSockets, and those that origins accept later: the server stops. */
  closeWebSockets(): void
}

/**
 * Creates the listeners of a server. A response that breaks off ends the connection. A request that is
 * not readable is refused with 400 before the gateway, and without an audit event.
 *
 * An upgrade that is not accepted has a response like any request, and then the connection ends: its
 * further bytes are not read. `withhold` removes headers that the client must not send.
 */
export function createListeners(
  gateway: Pick<Gateway, 'fetch'>,
  { context }: BackgroundWork,
  withhold?: (headers: Fields, incoming: IncomingMessage) => void,
): Listeners {
  const relays: Relays = new Set()
  let isStopping = false
  /** Requests and responses in progress, without WebSockets. */
  let open = 0
  let stalls: StallWatch | undefined

  /** `write` writes the response. */
  function handle(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    canUpgrade: boolean,
    write: (response: Response) => void,
  ): void {
    if (isClosing(incoming.socket)) return
    let request: IncomingRequest
    try {
      request = new IncomingRequest(incoming)
      withhold?.(request.headers, incoming)
      if (canUpgrade && request.body !== null)
        throw new Denied({ code: 'malformed_request', check: 'upgrade_with_body' })
    } catch (error) {
      // A proxy in front may have read another end of the request, so what follows is not trusted.
      closeAfter(outgoing)
      write(refusal(error))
      return
    }
    const { socket } = incoming
    open += 1
    outgoing.once('close', () => {
      open -= 1
      if (!outgoing.writableFinished) request.gone()
      else if (!incoming.complete) setTimeout(endUnless, REST_MS, incoming, socket)
    })
    const bindings: NodeBindings = { incoming, canUpgrade }
    const fail = (error: unknown) => write(refusal(error))
    try {
      const response = gateway.fetch(request as unknown as Request, bindings, context)
      if (response instanceof Promise) response.then(write, fail)
      else write(response)
    } catch (error) {
      fail(error)
    }
  }

  function closeWebSockets(): void {
    isStopping = true
    for (const relay of relays) relay.close(1001, 'the server is stopping')
  }

  return {
    request(incoming, outgoing) {
      handle(incoming, outgoing, false, (response) => writeInTurn({ response, outgoing }))
    },
    connect(incoming, socket) {
      const outgoing = lastResponse(incoming, socket)
      write(refusal(new Denied({ code: 'method_not_allowed', allow: [] })), outgoing)
    },
    upgrade(incoming, socket, head) {
      const outgoing = lastResponse(incoming, socket)
      handle(incoming, outgoing, true, (response) => {
        if (!(response instanceof UpgradedResponse)) write(response, outgoing)
        else if (socket.destroyed) discard(response)
        else {
          outgoing.detachSocket(socket as Socket)
          open -= 1
          stalls?.add(response.origin)
          response.writeTo(socket, head, relays)
          if (isStopping) closeWebSockets()
        }
      })
    },
    open: () => open + relays.size,
    watchStalls(server, ms, latest) {
      stalls = watchStalls(server, ms, latest)
      return stalls
    },
    closeWebSockets,
  }
}

/** Returns a response over a connection that Node has handed over. The connection ends after it. */
function lastResponse(incoming: IncomingMessage, socket: Duplex): ServerResponse {
  const outgoing = new ServerResponse(incoming)
  outgoing.shouldKeepAlive = false
  outgoing.assignSocket(socket as Socket)
  outgoing.once('finish', () => endSoon(socket))
  socket.on('error', () => socket.destroy())
  return outgoing
}

function endUnless(incoming: IncomingMessage, socket: Socket): void {
  if (!incoming.complete) endSoon(socket)
}

/** Refuses a request that no gateway has seen, so it gets its id here. */
function refusal(error: unknown): Response {
  const requestId = uuidV7(Date.now())
  const headers = { 'X-Request-Id': requestId }
  return problemResponse(problemOf(error as Error), { requestId, headers })
}

interface Finished {
  readonly response: Response
  readonly outgoing: ServerResponse
}

const writeInTurn = oncePerTurn<Finished>((all) => {
  for (const { response, outgoing } of all) write(response, outgoing)
})

/** Never throws. */
function write(response: Response, outgoing: ServerResponse): void {
  if (outgoing.destroyed) discard(response)
  else if (response instanceof OriginResponse) {
    try {
      response.writeTo(outgoing)
    } catch {
      // Node refuses a field.
      outgoing.destroy()
      discard(response)
    }
  } else writeStream(response, outgoing).catch(() => breakOff(outgoing))
}

/** Ends the call of the origin behind a response that no client gets. */
function discard(response: Response): void {
  if (response instanceof UpgradedResponse) response.discard()
  else if (response.body?.locked === false) response.body.cancel().catch(() => {})
}

/**
 * Writes a response no faster than the client reads it. A body of one chunk gets its length. The head of
 * a body that has not begun, such as an event stream, is sent at once.
 */
async function writeStream({ status, headers, body }: Response, outgoing: ServerResponse) {
  const fields = [...headers].flat()
  const reader = body?.getReader()
  if (reader === undefined) {
    outgoing.writeHead(status, fields).end()
    return
  }
  const left = new AbortController()
  outgoing.once('close', () => {
    left.abort()
    reader.cancel().catch(() => {})
  })
  const begun = reader.read()
  const isLate = (await Promise.race([begun, immediate(undefined)])) === undefined
  if (isLate) outgoing.writeHead(status, fields).flushHeaders()
  const first = await begun
  if (first.done) {
    if (!isLate) outgoing.writeHead(status, fields)
    outgoing.end()
    return
  }
  const rest = reader.read()
  const second = await Promise.race([rest, immediate(undefined)])
  if (second?.done && !isLate) {
    if (!headers.has('Content-Length')) fields.push('content-length', String(first.value.length))
    outgoing.writeHead(status, fields).end(first.value)
    return
  }
  if (!isLate) outgoing.writeHead(status, fields)
  outgoing.write(first.value)
  for (let chunk = await rest; !chunk.done; chunk = await reader.read()) {
    if (!outgoing.write(chunk.value)) await once(outgoing, 'drain', { signal: left.signal })
  }
  outgoing.end()
}
