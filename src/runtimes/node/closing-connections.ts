/** Connections that end after a response which refuses a request. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

const closing = new WeakSet<Duplex>()

/** Whether the last response of a connection is known. What Node still reads there is not handled (RFC 9112 section 9.6). */
export const isClosing = (socket: Duplex): boolean => closing.has(socket)

/** Marks a response as the last one of its connection. Returns false if another one is marked already. */
export function closeAfter(outgoing: ServerResponse): boolean {
  const { socket } = outgoing.req
  if (closing.has(socket)) return false
  closing.add(socket)
  outgoing.shouldKeepAlive = false
  return true
}
