/** Requests with `Upgrade` and `CONNECT`, which Node hands over with their connection. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { isClosing } from './closing-connections.ts'

export type OnConnection = (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void

export interface ConnectionListeners {
  /** For requests of a WebSocket. */
  readonly upgrade: OnConnection
  /** For `CONNECT`. */
  readonly connect: OnConnection
}

/** Returns the latest response of a connection of the server. */
export type LatestResponse = (socket: Duplex) => ServerResponse | undefined

/** The responses of connections whose clients do not wait for them, in their order. */
const pipelined = new WeakMap<Duplex, ServerResponse[]>()

export function latestResponses(server: Server): LatestResponse {
  const responses = new WeakMap<Duplex, ServerResponse>()
  server.prependListener('request', ({ socket }, outgoing) => {
    const before = responses.get(socket)
    if (before?.closed === false) queueAfter(before, outgoing, socket)
    responses.set(socket, outgoing)
  })
  return (socket) => responses.get(socket)
}

function queueAfter(before: ServerResponse, outgoing: ServerResponse, socket: Duplex): void {
  const queue = pipelined.get(socket)
  if (queue === undefined) {
    pipelined.set(socket, [before, outgoing])
    return
  }
  while (queue[0]?.closed) queue.shift()
  queue.push(outgoing)
}

/**
 * Calls the listeners for requests that Node hands over with their connection, when the responses before
 * them are complete. The server reads requests of other upgrades as if they had no `Upgrade` (RFC 9110
 * section 7.8). Never throws.
 */
export function onHandedOver(
  server: Server,
  latest: LatestResponse,
  { upgrade, connect }: ConnectionListeners,
): void {
  const inTurn =
    (proceed: OnConnection): OnConnection =>
    (incoming, socket, head) => {
      const before = latest(incoming.socket)
      socket.on('error', destroy)
      // A client may send requests without waiting for the responses.
      if (before === undefined || before.closed) {
        handOver()
        return
      }
      socket.once('close', closePipelined)
      before.once('close', () => {
        socket.off('close', closePipelined)
        handOver()
      })

      function handOver(): void {
        if (socket.destroyed || isClosing(incoming.socket)) return
        socket.off('error', destroy)
        try {
          proceed(incoming, socket, head)
        } catch {
          socket.destroy()
        }
      }
    }
  server.on('connect', inTurn(connect))
  server.on(
    'upgrade',
    inTurn((incoming, socket, head) => {
      if (incoming.headers.upgrade?.toLowerCase() === 'websocket') upgrade(incoming, socket, head)
      else readWithoutUpgrade(server, incoming, socket, head)
    }),
  )
}

function destroy(this: Duplex): void {
  this.destroy()
}

/** Closes the responses that wait for their turn, so that they count as open no longer. Node has removed its own listener. */
function closePipelined(this: Duplex): void {
  for (const response of pipelined.get(this) ?? []) response.destroy()
}

/**
 * Lets the server read a request again: without `Upgrade`, and with its body. The option
 * `shouldUpgradeCallback` of Node would lose bytes that follow the body.
 */
function readWithoutUpgrade(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.toLowerCase() !== 'upgrade') lines.push(`${name}: ${rawHeaders[at + 1]}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket)
}
