/** WebSockets through the gateway on Node, to an origin in workerd. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../harness/process.ts'
import { dial, exchange } from '../../origin/wire.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const HANDSHAKE = [
  'Upgrade: websocket',
  'Connection: Upgrade',
  `Sec-WebSocket-Key: ${KEY}`,
  'Sec-WebSocket-Version: 13',
]
/** RFC 6455 section 1.3. */
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

let origin: Running
let gateway: NodeGateway
let token: string

beforeAll(async () => {
  origin = await startWorkerd({ entry: 'test/routes/web-socket-origin.ts', vars: {} })
  gateway = await startNodeGateway({ ORIGIN_URL: `http://127.0.0.1:${origin.port}` })
  token = await gateway.token({ claims: { sub: 'alice' } })
})
afterAll(() => Promise.all([gateway?.close(), origin?.stop()]))

/** Returns the counts of opened and closed sockets at the origin. */
async function atOrigin(): Promise<{ opened: number; closed: string[] }> {
  const response = await fetch(`http://127.0.0.1:${origin.port}/`)
  return (await response.json()) as { opened: number; closed: string[] }
}

const head = (path: string, ...headers: string[]) =>
  `${[`GET ${path} HTTP/1.1`, 'Host: a', ...headers].join('\r\n')}\r\n\r\n`

async function open(bearer = token, { port } = gateway) {
  const init = { headers: { authorization: `Bearer ${bearer}` }, protocols: ['chat', 'other'] }
  const socket = new WebSocket(`ws://127.0.0.1:${port}/orders`, init as unknown as string[])
  socket.binaryType = 'arraybuffer'
  const received: unknown[] = []
  let heard = Promise.withResolvers<void>()
  socket.addEventListener('message', ({ data }) => {
    received.push(typeof data === 'string' ? data : [...new Uint8Array(data as ArrayBuffer)])
    heard.resolve()
    heard = Promise.withResolvers()
  })
  const closed = new Promise((resolve) => {
    socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason }))
  })
  await once(socket, 'open')
  return {
    socket,
    closed,
    async messages(count: number) {
      while (received.length < count) await heard.promise
      return received
    },
  }
}

describe('an upgrade', () => {
  test.each([
    ['without a token', [], 401],
    ['with a wrong version', ['Sec-WebSocket-Version: 8'], 400],
    ['from a page', ['Origin: https://app.test'], 400],
    ['with a body', ['Content-Length: 3'], 400],
  ])('%s is refused with a problem document, and reaches no origin', async (name, more, status) => {
    const before = await atOrigin()
    const bearer = name === 'without a token' ? [] : [`Authorization: Bearer ${token}`]
    const version = more.some((line) => line.startsWith('Sec-')) ? HANDSHAKE.slice(0, 3) : HANDSHAKE
    const reply = await exchange(gateway.port, head('/orders', ...version, ...bearer, ...more))
    expect(reply.status).toBe(status)
    expect(reply.headers).toMatch(/^content-type: application\/problem\+json$/im)
    expect(reply.headers).toMatch(/^connection: close$/im)
    expect((await atOrigin()).opened).toBe(before.opened)
  })

  test('that is refused ends the connection: a request behind it is not read', async () => {
    const second = head('/orders', `Authorization: Bearer ${token}`)
    const socket = await dial(gateway.port, head('/orders', ...HANDSHAKE) + second)
    let text = ''
    for await (const chunk of socket) text += chunk
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
  })

  test('behind a request whose response is not complete waits for it', async () => {
    const bearer = `Authorization: Bearer ${token}`
    const socket = await dial(
      gateway.port,
      head('/orders', bearer) + head('/orders', ...HANDSHAKE, bearer),
    )
    let text = ''
    socket.setEncoding('latin1').on('data', (data: string) => {
      text += data
    })
    await expect.poll(() => text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 101'])
    socket.destroy()
    expect((await exchange(gateway.port, head('/orders', bearer))).status).toBe(200)
  })

  test('is accepted with only the fields of the handshake', async () => {
    const reply = await exchange(
      gateway.port,
      head(
        '/orders',
        ...HANDSHAKE,
        'Sec-WebSocket-Protocol: chat',
        `Authorization: Bearer ${token}`,
      ),
    )
    expect(reply.status).toBe(101)
    expect(reply.headers).toMatch(/^sec-websocket-protocol: chat$/im)
    expect(reply.headers).toContain(ACCEPT)
    expect(reply.headers).toMatch(/^x-request-id: [0-9a-f-]{36}$/im)
    expect(reply.headers).not.toMatch(/^set-cookie/im)
  })

  test.each([
    ['to another protocol', ['Upgrade: h2c', 'Connection: Upgrade']],
    ['without the option of Connection', ['Upgrade: websocket']],
  ])('%s is ignored: the origin gets a plain request', async (_, headers) => {
    const before = await atOrigin()
    const reply = await exchange(
      gateway.port,
      head('/orders', ...headers, `Authorization: Bearer ${token}`),
    )
    expect(reply.status).toBe(200)
    expect((await atOrigin()).opened).toBe(before.opened)
  })

  test.each([
    ['declines', 'HTTP/1.1 426 No\r\nContent-Length: 2\r\n\r\nno', 426],
    [
      'accepts for another key',
      `HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\n`,
      502,
    ],
    ['closes', '', 502],
  ])('that the origin %s has its response', async (_, response, status) => {
    const port = await freePort()
    const raw = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.end(response))
    }).listen(port, '127.0.0.1')
    onTestFinished(() => void raw.close())
    const other = await startNodeGateway({ ORIGIN_URL: `http://127.0.0.1:${port}` })
    onTestFinished(() => other.close())
    const bearer = `Authorization: Bearer ${await other.token()}`
    const reply = await exchange(other.port, head('/orders', ...HANDSHAKE, bearer))
    expect(reply.status).toBe(status)
  })
})

describe('an open WebSocket', () => {
  test('carries messages both ways, in order and unchanged', async () => {
    const { socket, closed, messages } = await open()
    expect(socket.protocol).toBe('chat')
    const large = 'x'.repeat(1_000_000)
    for (const message of ['who', 'héllo', new Uint8Array([0, 1, 255]), '', large])
      socket.send(message)
    expect(await messages(5)).toEqual(['alice', 'héllo', [0, 1, 255], '', large])
    socket.send('bye')
    expect(await closed).toEqual({ code: 4001, reason: 'as requested' })
  })

  test('is closed with 1008 at both ends when the token expires', async () => {
    const exp = Math.floor(Date.now() / 1_000) + 2
    const { closed } = await open(await gateway.token({ claims: { exp } }))
    expect(await closed).toEqual({ code: 1008, reason: 'invalid_token' })
    await expect.poll(async () => (await atOrigin()).closed).toContain('1008 invalid_token')
  })

  test('of a client that disappears does not stay open at the origin', async () => {
    const before = await atOrigin()
    const bearer = `Authorization: Bearer ${token}`
    const socket = await dial(gateway.port, head('/orders', ...HANDSHAKE, bearer))
    await expect.poll(async () => (await atOrigin()).opened).toBe(before.opened + 1)
    socket.destroy()
    await expect
      .poll(async () => (await atOrigin()).closed.length)
      .toBeGreaterThan(before.closed.length)
  })

  test('reads no faster than the other end', async () => {
    const port = await freePort()
    const sockets: Socket[] = []
    const raw = createServer((socket) => {
      sockets.push(socket)
      socket
        .on('error', () => {})
        .once('data', () => {
          socket.pause()
          socket.write(
            `HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n\r\n`,
          )
        })
    }).listen(port, '127.0.0.1')
    onTestFinished(() => void raw.close())
    const other = await startNodeGateway({ ORIGIN_URL: `http://127.0.0.1:${port}` })
    onTestFinished(() => other.close())
    const bearer = `Authorization: Bearer ${await other.token()}`
    const client = await dial(other.port, head('/orders', ...HANDSHAKE, bearer))
    onTestFinished(() => void client.destroy())
    await once(client, 'data')
    // A client that sends 256 MB: the kernel and the gateway hold a small part of it.
    const piece = Buffer.alloc(1_048_576)
    let written = 0
    while (written < 256 && client.write(piece)) written += 1
    const stuck = await new Promise<boolean>((resolve) => {
      let quiet = setTimeout(() => resolve(true), 1_000)
      const more = () => {
        clearTimeout(quiet)
        quiet = setTimeout(() => resolve(true), 1_000)
        written += 1
        if (written >= 256) resolve(false)
        else client.write(piece)
      }
      client.on('drain', more)
    })
    expect(stuck).toBe(true)
    for (const socket of sockets) socket.destroy()
  })

  test('is closed with 1001 when the server stops', async () => {
    const other = await startNodeGateway({ ORIGIN_URL: `http://127.0.0.1:${origin.port}` })
    onTestFinished(() => other.close())
    const { closed } = await open(await other.token(), other)
    const ended = once(other.running.child, 'exit')
    other.running.child.kill('SIGTERM')
    expect(await closed).toEqual({ code: 1001, reason: 'the server is stopping' })
    expect(await ended).toEqual([0, null])
  })
})
