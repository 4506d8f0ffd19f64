import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dial, exchange } from '../origin/wire.ts'
import { type Running, startWorkerd } from '../origin/workerd.ts'

let origin: Running
let gateway: Running

beforeAll(async () => {
  origin = await startWorkerd({ entry: 'test/routes/web-socket-origin.ts', vars: {} })
  gateway = await startWorkerd({
    entry: 'test/origin/worker.ts',
    vars: { ORIGIN_URL: `http://127.0.0.1:${origin.port}` },
  })
})
afterAll(() => Promise.all([gateway?.stop(), origin?.stop()]))

const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
const HANDSHAKE = ['Upgrade: websocket', 'Connection: Upgrade', KEY, 'Sec-WebSocket-Version: 13']

function upgrade(method: string, ...headers: string[]) {
  const lines = [`${method} /chat HTTP/1.1`, 'Host: gateway.test', ...headers]
  return exchange(gateway.port, `${lines.join('\r\n')}\r\n\r\n`)
}

/** Returns the counts of opened and closed sockets at the origin. */
async function atOrigin(): Promise<{ opened: number; closed: string[] }> {
  const response = await fetch(`http://127.0.0.1:${origin.port}/`)
  return (await response.json()) as { opened: number; closed: string[] }
}

const callerUntil = (expiresAtSeconds: number) =>
  JSON.stringify({ issuer: 'i', subject: 'alice', roles: [], scopes: [], expiresAtSeconds })
const FAR = 9_999_999_999

interface Closed {
  readonly code: number
  readonly reason: string
}

/** Node's own client, which can send headers that a browser's cannot. */
async function open(headers: Record<string, string>) {
  const init = { headers, protocols: ['chat', 'other'] }
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`, init as unknown as string[])
  socket.binaryType = 'arraybuffer'
  const received: (string | number[])[] = []
  let heard = Promise.withResolvers<void>()
  socket.addEventListener('message', ({ data }) => {
    received.push(typeof data === 'string' ? data : [...new Uint8Array(data as ArrayBuffer)])
    heard.resolve()
    heard = Promise.withResolvers()
  })
  const closed = new Promise<Closed>((resolve) => {
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

const LISTED = '{"webSocketOrigins":["https://app.test"]}'

describe('a WebSocket upgrade', () => {
  test.each([
    ['without a key', 'GET', HANDSHAKE.filter((line) => line !== KEY)],
    [
      'with a short key',
      'GET',
      [...HANDSHAKE.filter((line) => line !== KEY), 'Sec-WebSocket-Key: a'],
    ],
    ['with two keys', 'GET', [...HANDSHAKE, KEY]],
    ['without a version', 'GET', HANDSHAKE.slice(0, 3)],
    ['of version 8', 'GET', [...HANDSHAKE.slice(0, 3), 'Sec-WebSocket-Version: 8']],
    [
      'without Connection: Upgrade',
      'GET',
      ['Connection: keep-alive', ...HANDSHAKE.slice(2), 'Upgrade: websocket'],
    ],
    ['by POST', 'POST', HANDSHAKE],
    ['with a body', 'GET', [...HANDSHAKE, 'Content-Length: 3']],
    ['from a page that is not listed', 'GET', [...HANDSHAKE, 'Origin: https://evil.test']],
    ['from a page with an opaque origin', 'GET', [...HANDSHAKE, 'Origin: null']],
    ['from a page of a similar name', 'GET', [...HANDSHAKE, 'Origin: https://app.test.evil.test']],
    ['from a page over http', 'GET', [...HANDSHAKE, 'Origin: http://app.test']],
  ])('%s is refused and reaches no origin [R28]', async (_, method, headers) => {
    const before = await atOrigin()
    const route = 'Test-Route: {"webSocketOrigins":["https://app.test"]}'
    expect((await upgrade(method, route, ...headers)).status).toBe(400)
    expect((await atOrigin()).opened).toBe(before.opened)
  })

  test('of an anonymous caller is refused if the route lists no origins [R28]', async () => {
    const before = await atOrigin()
    expect((await upgrade('GET', ...HANDSHAKE)).status).toBe(400)
    expect((await atOrigin()).opened).toBe(before.opened)
  })

  test('from a page that the route lists is accepted [R28]', async () => {
    const route = 'Test-Route: {"webSocketOrigins":["https://app.test"]}'
    const reply = await upgrade('GET', route, ...HANDSHAKE, 'Origin: https://app.test')
    expect(reply.status).toBe(101)
  })

  test('whose answer has more than 128 KiB of header fields is refused', async () => {
    const caller = `Test-Caller: ${callerUntil(FAR)}`
    const reply = await upgrade('GET', ...HANDSHAKE, caller, 'X-Large: yes')
    expect([reply.status, reply.body]).toEqual([502, '{"fault":"too_large"}'])
  })

  test('to another protocol is ignored, and the request is served as plain HTTP [S55]', async () => {
    const reply = await upgrade('GET', 'Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings')
    expect(reply.status).toBe(200)
  })

  test('is answered with only the protocol from the headers of the origin [S60]', async () => {
    const headers = [...HANDSHAKE, 'Sec-WebSocket-Protocol: chat']
    for (const caller of ['null', callerUntil(FAR)]) {
      const reply = await upgrade(
        'GET',
        ...headers,
        `Test-Caller: ${caller}`,
        `Test-Route: ${LISTED}`,
      )
      expect(reply.status).toBe(101)
      expect(reply.headers).toMatch(/^sec-websocket-protocol: chat$/im)
      expect(reply.headers).toMatch(/^x-request-id: [0-9a-f-]{36}$/im)
      expect(reply.headers).not.toMatch(/^set-cookie/im)
    }
  })
})

describe('an open WebSocket', () => {
  test.each([
    ['an anonymous caller', { 'Test-Route': LISTED }, 'anonymous'],
    ['a known caller', { 'Test-Caller': callerUntil(FAR), X_Auth_Subject: 'admin' }, 'alice'],
  ])('of %s carries messages both ways, in order and unchanged [R28]', async (_, headers, who) => {
    const { socket, closed, messages } = await open(headers as Record<string, string>)
    expect(socket.protocol).toBe('chat')
    socket.send('who')
    socket.send('héllo')
    socket.send(new Uint8Array([0, 1, 255]))
    socket.send('')
    socket.send('x'.repeat(100_000))
    expect(await messages(5)).toEqual([who, 'héllo', [0, 1, 255], '', 'x'.repeat(100_000)])
    socket.send('bye')
    expect(await closed).toEqual({ code: 4001, reason: 'as requested' })
  })

  test('is closed with 1008 when the token of its caller expires [R28]', async () => {
    const expired = await open({ 'Test-Caller': callerUntil(Date.now() / 1_000 + 0.5) })
    const lasting = await open({ 'Test-Caller': callerUntil(FAR) })
    expect(await expired.closed).toEqual({ code: 1008, reason: 'invalid_token' })
    await expect.poll(async () => (await atOrigin()).closed).toContain('1008 invalid_token')
    lasting.socket.send('still here')
    expect(await lasting.messages(1)).toEqual(['still here'])
    lasting.socket.close()
    await lasting.closed
  })

  test.each([
    ['closes with a code and a reason of its own', 4002, 'mine'],
    ['closes with a registered code and without a reason', 3000, ''],
  ])('of a client that %s is closed at the origin as well [R28]', async (_, code, reason) => {
    const { socket, closed } = await open({ 'Test-Caller': callerUntil(FAR) })
    socket.close(code, reason)
    await closed
    await expect.poll(async () => (await atOrigin()).closed).toContain(`${code} ${reason}`)
  })

  test('of a client that disappears does not stay open at the origin [R28]', async () => {
    const before = await atOrigin()
    const lines = [
      'GET /chat HTTP/1.1',
      'Host: g',
      ...HANDSHAKE,
      `Test-Caller: ${callerUntil(FAR)}`,
    ]
    const socket = await dial(gateway.port, `${lines.join('\r\n')}\r\n\r\n`)
    await once(socket, 'data')
    socket.resetAndDestroy()
    await expect
      .poll(async () => (await atOrigin()).closed.length)
      .toBeGreaterThan(before.closed.length)
  })
})
