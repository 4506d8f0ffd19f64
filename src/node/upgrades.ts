/** Requests with `Upgrade`, which Node hands over with their connection. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/**
 * Calls `upgrade` for requests of a WebSocket, when the responses before them are complete. The server
 * reads all others as if they had no `Upgrade` (RFC 9110 section 7.8).
 */
export function onWebSocketUpgrade(
  server: Server,
  upgrade: (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void,
): void {
  /** The latest response of each connection. */
  const responses = new WeakMap<Duplex, ServerResponse>()
  server.prependListener('request', (incoming, outgoing) => {
    responses.set(incoming.socket, outgoing)
  })
  server.on('upgrade', (incoming, socket, head) => {
    function proceed(): void {
      if (socket.destroyed) return
      if (incoming.headers.upgrade?.toLowerCase() === 'websocket') upgrade(incoming, socket, head)
      else readWithoutUpgrade(server, incoming, socket, head)
    }
    const before = responses.get(socket)
    // A client may send requests without waiting for the responses.
    if (before === undefined || before.closed) proceed()
    else {
      socket.on('error', destroy)
      before.once('close', () => {
        socket.off('error', destroy)
        proceed()
      })
    }
  })
}

function destroy(this: Duplex): void {
  this.destroy()
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
