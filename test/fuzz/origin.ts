/** The origin of the fuzz: a TCP server that does what each case says. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'
import { EARLY_RESPONSE, END_OF_HEAD, idIn, responseOf } from './messages.ts'
import type { Case } from './plan.ts'

export interface Origin {
  readonly url: string
  /** Open connections. */
  open(): number
  /** Returns the request ids that the gateway has sent, in order. */
  reached(): readonly string[]
  close(): Promise<void>
}

const CONTROL = /^(?:GET|POST) \/control /
const SOCKET_KEY = /^sec-websocket-key: (\S+)/im
const LAST_CHUNK = `0${END_OF_HEAD}`

/** Starts the origin. `caseOf` returns the case of an id. */
export async function startOrigin(caseOf: (id: number) => Case | undefined): Promise<Origin> {
  const open = new Set<Socket>()
  const reached: string[] = []
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {}).once('close', () => open.delete(socket))
    serveConnection(socket, caseOf, reached)
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    open: () => open.size,
    reached: () => reached,
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

/** Serves the requests of a connection, one after the other. */
function serveConnection(
  socket: Socket,
  caseOf: (id: number) => Case | undefined,
  reached: string[],
): void {
  let received = Buffer.alloc(0)
  let of: Case | undefined
  let isDone = false
  socket.on('data', (chunk) => {
    if (isDone) return
    received = Buffer.concat([received, chunk])
    const end = received.indexOf(END_OF_HEAD)
    if (end === -1) return
    const text = received.subarray(0, end).toString('latin1')
    if (of === undefined) {
      reached.push(/^x-request-id: (\S+)/im.exec(text)?.[1] ?? '')
      of = caseOf(idIn(text) ?? 0)
    }
    const body = received.subarray(end + END_OF_HEAD.length)
    const total = messageBytes(text, body, end + END_OF_HEAD.length)
    if (of === undefined) {
      if (total === undefined) return
      received = received.subarray(total)
      answerControl(socket, text, body)
      return
    }
    const { origin } = of
    const expected = end + END_OF_HEAD.length + (of.kind === 'get' ? 0 : of.uploadBytes)
    if (
      origin?.side === 'request' &&
      received.length >= Math.min(origin.at * expected, total ?? expected)
    ) {
      isDone = true
      act(socket, origin)
      return
    }
    if (of.kind === 'socket') {
      isDone = true
      respond(socket, of, text)
      // Reads the frames.
      socket.resume()
      return
    }
    if (total === undefined || received.length < total) return
    received = received.subarray(total)
    const answered = of
    of = undefined
    isDone = answered.origin !== undefined
    respond(socket, answered, text)
  })
}

/** Returns the length of a request; undefined if its end has not come. */
function messageBytes(text: string, body: Buffer, headBytes: number): number | undefined {
  if (/^transfer-encoding: chunked/im.test(text)) {
    // The filler of a body has no such bytes.
    const last = body.indexOf(LAST_CHUNK)
    return last === -1 ? undefined : headBytes + last + LAST_CHUNK.length
  }
  const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0)
  return body.length >= length ? headBytes + length : undefined
}

function answerControl(socket: Socket, text: string, body: Buffer): void {
  const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0)
  const echo = CONTROL.test(text) ? body.subarray(0, length) : Buffer.alloc(0)
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${echo.length}\r\n\r\n`)
  socket.write(echo)
}

function respond(socket: Socket, of: Case, request: string): void {
  const response = responseOf(of, SOCKET_KEY.exec(request)?.[1])
  const { origin } = of
  if (origin === undefined) {
    if (of.kind === 'socket') socket.end(response)
    else socket.write(response)
    return
  }
  // Never all of it, so that the response is incomplete.
  const bytes = Math.min(Math.floor(origin.at * response.length), response.length - 1)
  socket.write(response.subarray(0, bytes), () => act(socket, origin))
}

function act(socket: Socket, { act: what, side, ms }: NonNullable<Case['origin']>): void {
  switch (what) {
    case 'abort':
      socket.destroy()
      return
    case 'reset':
      socket.resetAndDestroy()
      return
    case 'early':
      if (side === 'request') socket.write(EARLY_RESPONSE)
      socket.end()
      return
    case 'halfClose':
      socket.end()
      return
    case 'stall':
      socket.pause()
      setTimeout(() => socket.destroy(), ms)
  }
}
