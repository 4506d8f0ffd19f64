/** Origins for tests: real HTTP servers, and TCP servers that break the HTTP protocol. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { KEEP_ALIVE_MS } from '../harness/http-server.ts'

export interface Listening {
  readonly port: number
  readonly close: () => Promise<void>
}

async function listen(server: Server): Promise<Listening> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return {
    port: address.port,
    async close() {
      server.close()
      for (const socket of sockets) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
  }
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** Starts an HTTP server; `requests` counts what reached it. */
export async function startHttpOrigin(handler: Handler) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    handler(request, response)
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  return { requests, ...(await listen(server)) }
}

/** Starts a TCP server that lets `answer` write any bytes after the request headers. */
export async function startTcpOrigin(answer: (socket: Socket, head: string) => void) {
  const received: string[] = []
  const server = createTcpServer((socket) => {
    const at = received.push('') - 1
    let answered = false
    socket.setEncoding('latin1').on('data', (text: string) => {
      received[at] += text
      const head = received[at] ?? ''
      if (answered || !head.includes('\r\n\r\n')) return
      answered = true
      answer(socket, head)
    })
  })
  return { received, ...(await listen(server)) }
}

/** Returns all headers of a request as they were on the wire: duplicates stay duplicates. */
export function headersOf(request: IncomingMessage): [name: string, value: string][] {
  const { rawHeaders } = request
  return Array.from({ length: rawHeaders.length / 2 }, (_, at) => [
    (rawHeaders[at * 2] ?? '').toLowerCase(),
    rawHeaders[at * 2 + 1] ?? '',
  ])
}
