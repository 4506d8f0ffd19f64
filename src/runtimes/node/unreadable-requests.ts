/** Refuses what Node's parser cannot read, after the responses that are in progress. */
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { endSoon } from './break-off.ts'

/** Node's status for the errors of its parser and its clock. Other errors are those of a connection. */
function selectStatus(code = ''): number | undefined {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 431
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 413
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 408
    default:
      return code.startsWith('HPE_') ? 400 : undefined
  }
}

/** Bytes after a request with `Connection: close`, which have no response (RFC 9112 section 9.6). */
const AFTER_THE_LAST = 'HPE_CLOSED_CONNECTION'

/**
 * Refuses a request that is not readable, and ends its connection. By default, Node writes this refusal in
 * place of a response that is in progress for a complete request: the client would read that a request
 * was refused that has reached the origin. Responses have the order of the requests (RFC 9112 section
 * 9.3.2). `latest` returns the latest response of a connection.
 */
export function refuseUnreadable(
  server: Server,
  latest: (socket: Duplex) => ServerResponse | undefined,
): void {
  /** Node reports the same fault for all bytes that follow. */
  const refused = new WeakSet<Duplex>()
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
    const status = selectStatus(code)
    if (status === undefined || !socket.writable) {
      socket.destroy()
      return
    }
    if (refused.has(socket)) return
    refused.add(socket)
    const response = latest(socket)
    if (response === undefined || response.closed) cut(socket as Socket, status)
    else if (!response.req.complete) refuseBody(response, socket as Socket, status)
    else
      response.once('close', () => {
        if (!socket.writable) return
        if (code !== AFTER_THE_LAST) socket.write(headOf(status))
        endSoon(socket)
      })
  })
}

/** Refuses the request whose body is not readable, in its turn. */
function refuseBody(response: ServerResponse, socket: Socket, status: number): void {
  if (response.socket === null) {
    response.once('socket', () => refuseBody(response, socket, status))
  } else if (response.headersSent) socket.destroySoon()
  else cut(socket, status)
}

function cut(socket: Socket, status: number): void {
  socket.write(headOf(status))
  socket.destroySoon()
}

const headOf = (status: number): string =>
  `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`
