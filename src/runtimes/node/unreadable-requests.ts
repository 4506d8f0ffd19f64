/** Refuses what Node's parser cannot read, after the responses that are in progress. */
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { uuidV7 } from '../../isolate/random-ids.ts'
import { problem } from '../../problems/problem.ts'
import { endSoon } from './break-off.ts'
import { closeAfter, isClosing } from './closing-connections.ts'

type Status = 400 | 408 | 413 | 417 | 431

/** Node's status for the errors of its parser and its clock. Other errors are those of a connection. */
function selectStatus(code = ''): Status | undefined {
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
 * 9.3.2). `latest` returns the latest response of a connection. Refuses expectations other than
 * `100-continue`, too (RFC 9110 section 10.1.1).
 */
export function refuseUnreadable(
  server: Server,
  latest: (socket: Duplex) => ServerResponse | undefined,
): void {
  /** Node reports the same fault for all bytes that follow. */
  const refused = new WeakSet<Duplex>()
  server.on('checkExpectation', (incoming, response) => {
    const isFirst = closeAfter(response)
    // Node emits this event instead. The listeners record the response, and handle no request of a closing connection.
    server.emit('request', incoming, response)
    if (!isFirst) return
    const [fields, document] = problemOf(417)
    response.writeHead(417, fields).end(document)
  })
  server.on('checkContinue', (incoming, response) => {
    response.writeContinue()
    if (response.socket === null) keepAfterContinue(response)
    server.emit('request', incoming, response)
  })
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => {
    const status = selectStatus(code)
    if (status !== undefined && isClosing(socket)) return
    if (status === undefined || !socket.writable) {
      socket.destroy()
      return
    }
    if (refused.has(socket)) return
    refused.add(socket)
    const response = latest(socket)
    if (response === undefined || (response.closed && response.req.complete))
      cut(socket as Socket, status)
    else if (response.closed) endSoon(socket)
    else if (!response.req.complete) refuseBody(response, socket as Socket, status)
    else
      response.once('close', () => {
        if (!socket.writable) return
        if (code !== AFTER_THE_LAST) socket.write(refusalOf(status))
        endSoon(socket)
      })
  })
}

/**
 * Keeps the head of a response behind its `100 Continue`. While a response waits for its turn, Node puts the
 * head in front of all that is written, if it is sent with bytes of the body.
 */
function keepAfterContinue(response: ServerResponse): void {
  const writeHead = response.writeHead
  response.writeHead = function writeHeadAlone(...head: unknown[]) {
    writeHead.apply(response, head as Parameters<typeof writeHead>)
    response.flushHeaders()
    return response
  }
}

/** Refuses the request whose body is not readable, in its turn. */
function refuseBody(response: ServerResponse, socket: Socket, status: Status): void {
  if (response.writableEnded) {
    // Its response does not depend on the rest of its body.
    response.once('close', () => endSoon(socket))
  } else if (response.socket === null) {
    response.once('socket', () => refuseBody(response, socket, status))
  } else if (response.headersSent) socket.destroySoon()
  else cut(socket, status)
}

function cut(socket: Socket, status: Status): void {
  socket.write(refusalOf(status))
  socket.destroySoon()
}

const DETAILS: Readonly<Record<Status, string>> = {
  400: 'The request is not well formed.',
  408: 'The request did not arrive in time.',
  413: 'The extensions of the chunks are too large.',
  417: 'The expectation is unknown.',
  431: 'The header fields are too large.',
}

/** Returns the problem document and its fields, with a new request id. No policy is known here, so no `problemBaseUrl`. */
function problemOf(status: Status): [fields: Readonly<Record<string, string>>, document: string] {
  const code = status === 413 ? 'payload_too_large' : 'malformed_request'
  const { title, detail } = problem(code, DETAILS[status])
  const type = `urn:portcullis:problem:${code}`
  const requestId = uuidV7(Date.now())
  const document = JSON.stringify({ type, title, status, detail, code, requestId })
  const fields = {
    Date: new Date().toUTCString(),
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
    'Content-Length': String(document.length),
    Connection: 'close',
  }
  return [fields, document]
}

function refusalOf(status: Status): string {
  const [fields, document] = problemOf(status)
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('\r\n')}\r\n\r\n${document}`
}
