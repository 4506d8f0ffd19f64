/** Uploads that the origin does not read to their end, through a gateway process on Node. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../harness/process.ts'
import { dial } from '../../origin/wire.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

const BODY_BYTES = 2_097_152
const BODY = Buffer.alloc(BODY_BYTES, 'x')
const PIECE = BODY.subarray(0, 65_536)
const CHUNK = Buffer.concat([Buffer.from('10000\r\n'), PIECE, Buffer.from('\r\n')])
const CHUNKS = Buffer.concat([...Array(32).fill(CHUNK), Buffer.from('0\r\n\r\n')])

let gateway: NodeGateway
let server: Server
/** What the origin does with a connection when the first bytes arrive. */
let onRequest: (socket: Socket) => void = () => {}
const sockets = new Set<Socket>()

beforeAll(async () => {
  const port = await freePort()
  server = createServer((socket) => {
    sockets.add(socket)
    socket
      .on('error', () => {})
      .once('close', () => sockets.delete(socket))
      .once('data', (head) => {
        if (String(head).startsWith('GET ')) socket.end(OK)
        else onRequest(socket)
      })
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  gateway = await startNodeGateway({
    ORIGIN_URL: `http://127.0.0.1:${port}`,
    POLICY: './transport-policy.ts',
  })
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  server?.close()
  await gateway?.close()
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const TOO_LARGE =
  'HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno'

const FRAMINGS = {
  'a Content-Length': `Content-Length: ${BODY_BYTES}`,
  chunks: 'Transfer-Encoding: chunked',
} as const

/** Sends the whole body at once. Returns the status of the response, 0 if there is none. */
async function upload(framing: keyof typeof FRAMINGS): Promise<number> {
  const head = ['POST /uploads/1 HTTP/1.1', 'Host: gateway.test', FRAMINGS[framing]]
  const socket = await dial(gateway.port, `${head.join('\r\n')}\r\n\r\n`)
  let received = ''
  const answered = Promise.withResolvers<void>()
  socket
    .setEncoding('latin1')
    .on('data', (text) => {
      received += text
      if (received.includes('\r\n\r\n')) answered.resolve()
    })
    .once('close', answered.resolve)
  // A body that is not read to its end is not written to its end either.
  const written = new Promise<void>((resolve) => {
    socket.write(framing === 'chunks' ? CHUNKS : BODY, () => resolve())
  })
  await answered.promise
  await written
  socket.destroy()
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? 0)
}

async function statusOfOther(): Promise<number> {
  const response = await fetch(`${gateway.url}/downloads/1`)
  await response.arrayBuffer()
  return response.status
}

describe.each(Object.keys(FRAMINGS) as (keyof typeof FRAMINGS)[])(
  'an upload with %s',
  (framing) => {
    test.each([
      ['closes the connection', (socket: Socket) => void socket.destroy(), [502]],
      ['resets the connection', (socket: Socket) => void socket.resetAndDestroy(), [502]],
      ['ends its side of the connection', (socket: Socket) => void socket.end(), [502]],
      ['answers 413 and closes', (socket: Socket) => void socket.end(TOO_LARGE), [413]],
      ['answers 413 and resets', answerAndReset, [413]],
      ['does not read', stall, [504]],
    ])(
      'has one response if the origin %s, and other requests continue',
      async (_, act, expected) => {
        onRequest = act
        const isSlow = act === stall
        for (let round = 0; round < (isSlow ? 1 : 12); round += 1) {
          const [upload1, upload2, other] = await Promise.all([
            upload(framing),
            upload(framing),
            statusOfOther(),
          ])
          expect(expected).toContain(upload1)
          expect(expected).toContain(upload2)
          expect(other).toBe(200)
        }
        expect(gateway.running.child.exitCode).toBeNull()
      },
    )
  },
)

function answerAndReset(socket: Socket): void {
  socket.write(TOO_LARGE, () => socket.resetAndDestroy())
}

function stall(socket: Socket): void {
  socket.pause()
}
