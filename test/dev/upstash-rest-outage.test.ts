/** What callers of the local Upstash REST server see while its Redis is away or silent. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Redis } from '@upstash/redis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import { startUpstashRest, type UpstashRest } from '../../dev/upstash-rest/server.ts'

const TOKEN = 'token-for-tests'

let redis: RedisHandle
let line: Awaited<ReturnType<typeof startLine>>
let rest: UpstashRest

beforeEach(async () => {
  redis = await startRedis({ prefer: 'embedded' })
  line = await startLine(Number(new URL(redis.url).port))
  rest = await startUpstashRest({ port: 0, token: TOKEN, redis: { url: line.url } })
})
afterEach(async () => {
  await rest.close()
  await line.cut()
  await redis.close()
})

/** A line to Redis that can be cut and mended: the same address, Redis or nobody. */
async function startLine(redisPort: number) {
  const sockets = new Set<Socket>()
  let silent = false
  const server = createServer((socket) => {
    const upstream = connect(redisPort, '127.0.0.1')
    socket.on('data', (chunk) => silent || upstream.write(chunk))
    upstream.pipe(socket)
    for (const end of [socket, upstream]) {
      sockets.add(end)
      end.on('error', () => {})
      end.on('close', () => {
        sockets.delete(end)
        socket.destroy()
        upstream.destroy()
      })
    }
  })
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    url: `redis://127.0.0.1:${port}`,
    mend: () => listen(port),
    silence: () => {
      silent = true
    },
    cut: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

async function post(path: string, body: unknown) {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const init = { method: 'POST', body: JSON.stringify(body), headers }
  const response = await fetch(rest.url + path, init)
  return { status: response.status, body: await response.json() }
}

const UNAVAILABLE = { status: 503, body: { error: 'ERR Redis is unavailable' } }

test('a lost Redis is a 503 on every route, and none of its commands is sent later', async () => {
  expect(await post('/', ['SET', 'counter', '1'])).toEqual({ status: 200, body: { result: 'OK' } })
  await line.cut()
  await expect.poll(() => post('/', ['INCR', 'counter'])).toEqual(UNAVAILABLE)
  expect(await post('/pipeline', [['INCR', 'counter'], ['PING']])).toEqual(UNAVAILABLE)
  expect(await post('/multi-exec', [['INCR', 'counter']])).toEqual(UNAVAILABLE)
  expect(await post('/', ['BLPOP', 'queue', 1])).toEqual(UNAVAILABLE)
  await line.mend()
  await expect
    .poll(() => post('/', ['GET', 'counter']), { timeout: 10_000 })
    .toEqual({
      status: 200,
      body: { result: '1' },
    })
})

test('the client throws while Redis is away, and works once it is back', async () => {
  const client = new Redis({ url: rest.url, token: TOKEN, enableTelemetry: false })
  await line.cut()
  await expect(client.get('key')).rejects.toThrow('ERR Redis is unavailable')
  await line.mend()
  await expect.poll(() => client.ping().catch(() => ''), { timeout: 10_000 }).toBe('PONG')
})

test('a command under way when Redis is lost is answered', async () => {
  line.silence()
  const answer = post('/', ['PING'])
  await new Promise((resolve) => setImmediate(resolve))
  await line.cut()
  expect(await answer).toEqual(UNAVAILABLE)
})

test('a Redis that has fallen silent is given up', async () => {
  line.silence()
  expect(await post('/', ['PING'])).toEqual(UNAVAILABLE)
}, 15_000)
