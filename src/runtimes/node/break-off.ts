/** Ends a response that cannot be completed. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** How long a client has to read what was written. */
const REST_MS = 500

/**
 * Ends a connection after its last response. Bytes that the client still sends are discarded for half a
 * second: a connection that closes with unread bytes is reset, and the client might lose the response.
 * A connection that is not read does not notice that its client has left, so it is destroyed then.
 */
export function endSoon(socket: Duplex): void {
  socket.end()
  socket.resume()
  setTimeout(() => socket.destroy(), REST_MS).unref()
}

/**
 * Ends the connection, so that the client sees that the response is incomplete. It still gets what was
 * written in this turn of the event loop: its head, at least. Without it, the client could not tell
 * whether its request was handled.
 *
 * In HTTP/1.0 the end of a body can be the end of the connection, and an incomplete one would look
 * complete. Such a connection is reset.
 */
export function breakOff(outgoing: ServerResponse): void {
  const { socket } = outgoing
  if (socket === null || !outgoing.headersSent || outgoing.writableFinished) {
    outgoing.destroy()
    return
  }
  outgoing.flushHeaders()
  // Node collects the writes of one turn.
  while (socket.writableCorked > 0) socket.uncork()
  if (outgoing.req.httpVersion === '1.0') reset(socket)
  else {
    socket.destroySoon()
    setTimeout(() => socket.destroy(), REST_MS).unref()
  }
}

function reset(socket: Socket): void {
  // A connection over TLS has no reset; its end is authenticated.
  if ('encrypted' in socket) socket.destroy()
  else socket.resetAndDestroy()
}
