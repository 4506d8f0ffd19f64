/** Kept connections that an origin ends, byte for byte. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Unavailable } from '../../../src/errors.ts'
import { createNodeOrigin } from '../../../src/runtimes/node/origin.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'

interface Received {
  readonly line: string
  readonly connection: number
}

/** Starts an origin. `answer` gets a request, its place on its connection, and the connection. */
async function startRaw(
  answer: (socket: Socket, nth: number, line: string) => void,
): Promise<{ readonly url: string; readonly received: Received[] }> {
  const received: Received[] = []
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    const connection = connections
    let nth = 0
    socket
      .on('error', () => {})
      .on('data', (data) => {
        for (const line of String(data).match(/^[A-Z]+ \/\S* HTTP/gm) ?? []) {
          nth += 1
          received.push({ line, connection })
          answer(socket, nth, line)
        }
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

function originAt(url: string) {
  const origin = createNodeOrigin({ url })
  onTestFinished(origin.close)
  return async function send(
    method: string,
    path = '/',
    body: Uint8Array | null = null,
    headers: ReadonlyMap<string, string> = new Map(),
  ) {
    const incoming = new Request(`http://a${path}`, { method })
    try {
      const response = await origin.send({ incoming, headers, body, timeoutMs: 5_000 })
      await new Response(response.body).text()
      // The connection becomes idle.
      await sleep(5)
      return response.status
    } catch (error) {
      if (error instanceof Unavailable) return error.fault
      throw error
    }
  }
}

const ENDS: readonly (readonly [string, (socket: Socket) => void])[] = [
  ['resets', (socket) => socket.resetAndDestroy()],
  ['closes', (socket) => socket.destroy()],
  ['ends', (socket) => socket.end()],
]

describe.each(ENDS)(
  'an origin that %s a kept connection when the next request arrives',
  (_, end) => {
    const startEnding = () =>
      startRaw((socket, nth) => void (nth === 1 ? socket.write(`${OK}\r\nok`) : end(socket)))

    test.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])(
      'gets %s without a body once more, on a new connection',
      async (method) => {
        const { url, received } = await startEnding()
        const send = originAt(url)
        expect([await send('GET', '/first'), await send(method, '/second')]).toEqual([200, 200])
        expect(received).toEqual([
          { line: 'GET /first HTTP', connection: 1 },
          { line: `${method} /second HTTP`, connection: 1 },
          { line: `${method} /second HTTP`, connection: 2 },
        ])
      },
    )

    test.each([
      ['POST', null],
      ['POST', new Uint8Array([1])],
      ['PATCH', null],
      ['PUT', new Uint8Array([1])],
      ['DELETE', new Uint8Array([1])],
    ])('gets %s with the body %j never twice', async (method, body) => {
      const { url, received } = await startEnding()
      const send = originAt(url)
      expect([await send('GET', '/first'), await send(method, '/second', body)]).toEqual([
        200,
        'unreachable',
      ])
      expect(received.filter(({ line }) => line.includes('/second'))).toHaveLength(1)
    })

    test('receives an upgrade once', async () => {
      const { url, received } = await startEnding()
      const send = originAt(url)
      const upgrade = new Map([
        ['upgrade', 'websocket'],
        ['connection', 'Upgrade'],
      ])
      expect([await send('GET', '/first'), await send('GET', '/second', null, upgrade)]).toEqual([
        200,
        'unreachable',
      ])
      expect(received.filter(({ line }) => line === 'GET /second HTTP')).toHaveLength(1)
    })

    test('gets a request on a new connection never twice', async () => {
      const { url, received } = await startRaw(end)
      expect(await originAt(url)('GET')).toBe('unreachable')
      expect(received).toHaveLength(1)
    })

    test('gets a request that fails again not a third time', async () => {
      const { url, received } = await startRaw((socket, nth, line) => {
        if (nth === 1 && line.includes('first')) socket.write(`${OK}\r\nok`)
        else end(socket)
      })
      const send = originAt(url)
      expect([await send('GET', '/first'), await send('GET', '/second')]).toEqual([
        200,
        'unreachable',
      ])
      expect(received).toHaveLength(3)
    })
  },
)

test('requests in the same millisecond in which an origin ends idle connections have responses', async () => {
  const idleMs = 20
  const { url, received } = await startRaw((socket) => {
    socket.write(`${OK}\r\nok`)
    socket.setTimeout(idleMs, () => socket.destroy())
  })
  const send = originAt(url)
  const statuses: unknown[] = []
  for (let count = 0; count < 60; count += 1) {
    statuses.push(await send('GET'))
    await sleep(idleMs - 1 + (count % 3))
  }
  expect(new Set(statuses)).toEqual(new Set([200]))
  // One that was repeated may have arrived twice.
  expect(received.length).toBeLessThanOrEqual(120)
})

test('a connection is not kept longer than the origin announces, less a margin', async () => {
  const { url, received } = await startRaw((socket) => {
    socket.write(`${OK}Keep-Alive: timeout=1\r\n\r\nok`)
  })
  const send = originAt(url)
  for (let count = 0; count < 3; count += 1) expect(await send('POST')).toBe(200)
  expect(received.map(({ connection }) => connection)).toEqual([1, 2, 3])
})

test('a response that breaks off after its beginning is not requested again', async () => {
  const { url, received } = await startRaw((socket, nth) => {
    if (nth === 1) socket.write(`${OK}\r\nok`)
    else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
  })
  const send = originAt(url)
  expect(await send('GET')).toBe(200)
  await expect(send('GET')).rejects.toThrow()
  expect(received).toHaveLength(2)
})

test.each([
  ['is not HTTP', 'SSH-2.0-x\r\n', 'malformed'],
  ['has too large a header', `${OK}X-Big: ${'y'.repeat(140_000)}\r\n\r\nok`, 'too_large'],
])('a second response that %s is not requested again', async (_, second, fault) => {
  const { url, received } = await startRaw((socket, nth) => {
    socket.write(nth === 1 ? `${OK}\r\nok` : second)
  })
  const send = originAt(url)
  expect([await send('GET'), await send('GET')]).toEqual([200, fault])
  expect(received).toHaveLength(2)
})

test.each([
  ['before', ''],
  ['inside', 'HTTP/1.1 200 OK\r\nContent-'],
])(
  'an origin that ends the connection %s the head of its response is unreachable',
  async (_, text) => {
    const { url } = await startRaw((socket) => {
      socket.end(text)
    })
    expect(await originAt(url)('GET')).toBe('unreachable')
  },
)
