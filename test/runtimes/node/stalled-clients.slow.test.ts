/** Clients and origins that stop reading or sending, through a gateway process on Node. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../harness/process.ts'
import { dial } from '../../origin/wire.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

/** Longer than `clientStallSeconds` of the policy, and the time until the gateway looks again. */
const LONGER_MS = 2_500
const PIECE = Buffer.alloc(65_536, 'x')
/**
 * Is in each request for the origin. A program of another test may still connect to the port of its own
 * former server.
 */
const MARK = crypto.randomUUID()
const GET = `GET /downloads/${MARK} HTTP/1.1\r\nHost: gateway.test\r\n\r\n`
const UPGRADE = [
  `GET /sockets?${MARK} HTTP/1.1`,
  'Host: gateway.test',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13\r\n\r\n',
].join('\r\n')
const ACCEPTED = [
  'HTTP/1.1 101 Switching Protocols',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
].join('\r\n')
const HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999999999999\r\n\r\n'

let gateway: NodeGateway
let server: Server
let answer: (socket: Socket) => void = () => {}
const atOrigin = new Set<Socket>()
/** Requests of a test so far. Their connections may have ended before a slow machine looks. */
let arrived = 0
const clients = new Set<Socket>()

beforeAll(async () => {
  const port = await freePort()
  server = createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', (data) => {
        if (!String(data).includes(MARK)) return void socket.destroy()
        arrived += 1
        atOrigin.add(socket)
        socket.once('close', () => atOrigin.delete(socket))
        answer(socket)
      })
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  gateway = await startNodeGateway({
    ORIGIN_URL: `http://127.0.0.1:${port}`,
    POLICY: './transport-policy.ts',
  })
})
afterEach(() => {
  for (const socket of [...clients, ...atOrigin]) socket.destroy()
  clients.clear()
  arrived = 0
})
afterAll(async () => {
  server?.close()
  await gateway?.close()
})

/** Writes as fast as the other end reads, until the connection ends. */
function flood(socket: Socket): void {
  while (!socket.destroyed && socket.write(PIECE));
  socket.once('drain', () => flood(socket))
}

function floodAfter(head: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(head)
    flood(socket)
  }
}

async function send(text: string): Promise<Socket> {
  const client = await dial(gateway.port, text)
  clients.add(client)
  return client
}

/** A client that is not read from never sees the end of its connection. Its origin does. */
const isOver = () => expect.poll(() => atOrigin.size).toBe(0)

describe('a connection ends if [R41]', () => {
  test('bytes of a response wait for the client, and it reads none of them', async () => {
    answer = floodAfter(HEAD)
    const stalled = await Promise.all(Array.from({ length: 4 }, () => send(GET)))
    for (const client of stalled) client.pause()
    await expect.poll(() => arrived).toBe(4)
    await isOver()
  })

  test('bytes of a WebSocket wait for the client, and it reads none of them', async () => {
    answer = floodAfter(ACCEPTED)
    const client = await send(UPGRADE)
    client.pause()
    await expect.poll(() => arrived).toBe(1)
    // What it sends is not what it reads.
    const sending = setInterval(() => client.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0])), 100)
    await isOver()
    clearInterval(sending)
  })

  test('bytes of a WebSocket wait for the origin, and it reads none of them', async () => {
    answer = (socket) => {
      socket.pause()
      socket.write(ACCEPTED)
    }
    const client = await send(UPGRADE)
    await once(client, 'data')
    const closed = new Promise((resolve) => client.once('close', resolve))
    flood(client)
    await closed
  })

  test('the body of a request is expected, and no byte of it arrives', async () => {
    const received: Buffer[] = []
    answer = (socket) => socket.on('data', (chunk) => received.push(chunk))
    const lines = [
      `POST /patient-uploads?${MARK} HTTP/1.1`,
      'Host: gateway.test',
      'Content-Length: 100',
    ]
    const client = await send(`${lines.join('\r\n')}\r\n\r\nbegun`)
    await once(client.resume(), 'close')
    await isOver()
    expect(Buffer.concat(received).toString()).not.toContain('0\r\n\r\n')
  })
})

describe('a connection stays if', () => {
  test('its client reads slowly', async () => {
    answer = floodAfter(HEAD)
    const client = await send(GET)
    let read = 0
    client.on('data', (chunk) => {
      read += chunk.length
      client.pause()
    })
    const reading = setInterval(() => client.resume(), 100)
    await sleep(LONGER_MS)
    const before = read
    await expect.poll(() => read).toBeGreaterThan(before)
    clearInterval(reading)
    expect(client.destroyed).toBe(false)
  })

  test('its origin is silent', async () => {
    const { promise: answered, resolve } = Promise.withResolvers<Socket>()
    answer = (socket) => {
      socket.write(HEAD)
      resolve(socket)
    }
    const client = await send(GET)
    await once(client, 'data')
    await sleep(LONGER_MS)
    const origin = await answered
    origin.write('data: late\n\n')
    const [chunk] = (await once(client, 'data')) as [Buffer]
    expect(chunk.toString()).toContain('late')
  })

  test('its WebSocket is idle', async () => {
    answer = (socket) => socket.write(ACCEPTED)
    const client = await send(UPGRADE)
    await once(client, 'data')
    await sleep(LONGER_MS)
    expect(client.destroyed).toBe(false)
    expect(atOrigin.size).toBe(1)
  })
})

test('responses in progress count until they end: above the maximum, requests are 503', async () => {
  answer = (socket) => socket.write(HEAD)
  const streams = await Promise.all(Array.from({ length: 20 }, () => send(GET)))
  await Promise.all(streams.map((stream) => once(stream, 'data')))
  const status = async () => (await fetch(`${gateway.url}/nowhere`)).status
  expect(await status()).toBe(503)
  expect(atOrigin.size).toBe(20)
  streams[0]?.destroy()
  await expect.poll(status).toBe(404)
})
