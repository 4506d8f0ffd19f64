/** Requests in flight, from outside, on every runtime: what ends a request gives its slot back. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { AUDIENCE, createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { RUNTIMES } from '../../origin/runtimes.ts'
import type { Running } from '../../origin/workerd.ts'

/** As in `in-flight-gateway.ts`. */
const LIMIT = 3
/** RFC 6455 section 1.3. */
const ACCEPT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** A close frame of a server with the code 1000. */
const CLOSE_FRAME = Buffer.from([0x88, 2, 3, 0xe8])
const PATIENCE = { timeout: 100_000, interval: 50 }

/** An origin that begins responses and WebSockets, and ends none by itself. */
async function startHoldingOrigin() {
  const open = new Set<ServerResponse>()
  const sockets = new Set<Duplex>()
  let calls = 0
  const server = createServer((request, response) => {
    request.resume()
    calls += 1
    open.add(response)
    response.once('close', () => open.delete(response))
    response.write('begun ')
  })
  server.on('upgrade', ({ headers }, socket) => {
    calls += 1
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${ACCEPT}`)
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`,
    )
    // Answers the close frame of the client, which is the only frame that it sends.
    socket.once('data', () => socket.end(CLOSE_FRAME))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    open,
    sockets,
    calls: () => calls,
    port: (server.address() as AddressInfo).port,
    close() {
      for (const response of open) response.destroy()
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

describe.each(RUNTIMES)('requests in flight on $name', ({ start }) => {
  let redis: TestRedis
  let origin: Awaited<ReturnType<typeof startHoldingOrigin>>
  let gateway: Running
  let headers: { readonly authorization: string }
  beforeAll(async () => {
    redis = await startTestRedis()
    const key = await createKey('idp')
    origin = await startHoldingOrigin()
    const jwks = { keys: [key.publicJwk] }
    gateway = await start({
      entry: 'test/features/plans/in-flight-gateway.ts',
      vars: {
        ...redisVars(redis),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
        ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, jwks }]),
      },
    })
    headers = { authorization: `Bearer ${await mint(key, { claims: { sub: 'alice' } })}` }
  })
  afterEach(() => redis.direct.flushall())
  afterAll(async () => {
    origin?.close()
    await gateway?.stop()
    await redis?.close()
  })

  const send = (signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${gateway.port}/slots`, { headers, ...(signal && { signal }) })
  async function openSocket() {
    const init = { headers } as unknown as string[]
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/slots`, init)
    await once(socket, 'open')
    return socket
  }
  async function slots() {
    const [key] = await redis.direct.keys('pc:limit:inFlight-concurrency:*')
    return key === undefined ? 0 : redis.direct.zcard(key)
  }

  test('never exceed the limit, and give their slots back after the response or an abort', async () => {
    const before = origin.calls()
    const many = await Promise.all(Array.from({ length: 12 }, () => send()))
    const admitted = many.filter(({ status }) => status === 200)
    expect(admitted.length).toBe(LIMIT)
    expect(many.filter(({ status }) => status === 429).length).toBe(many.length - LIMIT)
    expect(origin.calls() - before).toBe(LIMIT)
    for (const response of origin.open) response.end('ended')
    for (const response of admitted) expect(await response.text()).toBe('begun ended')
    await expect.poll(slots, PATIENCE).toBe(0)

    const aborter = new AbortController()
    expect((await send(aborter.signal)).status).toBe(200)
    expect(await slots()).toBe(1)
    aborter.abort()
    // workerd finds that a client has left when it writes to it.
    const slotsAfterMore = () => {
      for (const response of origin.open) response.write('more ')
      return slots()
    }
    await expect.poll(slotsAfterMore, PATIENCE).toBe(0)
  })

  test('include WebSockets, which give their slots back when either end closes them', async () => {
    const sockets = [await openSocket(), await openSocket(), await openSocket()]
    expect(await slots()).toBe(LIMIT)
    const before = origin.calls()
    expect((await send()).status).toBe(429)
    expect(origin.calls()).toBe(before)
    sockets[0]?.close(1000)
    await expect.poll(slots, PATIENCE).toBe(LIMIT - 1)
    for (const socket of origin.sockets) socket.end(CLOSE_FRAME)
    await expect.poll(slots, PATIENCE).toBe(0)
    const again = await openSocket()
    expect(await slots()).toBe(1)
    again.close()
    await expect.poll(slots, PATIENCE).toBe(0)
  })
})
