/** Responses of the local Upstash REST server while its Redis is down or does not respond. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Redis } from '@upstash/redis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import { startUpstashRest, type UpstashRest } from '../../dev/upstash-rest/server.ts'

const TOKEN = 'token-for-tests'

let redis: RedisHandle
let proxy: Awaited<ReturnType<typeof startProxy>>
let rest: UpstashRest

beforeEach(async () => {
  redis = await startRedis({ prefer: 'embedded' })
  proxy = await startProxy(Number(new URL(redis.url).port))
  rest = await startUpstashRest({ port: 0, token: TOKEN, redis: { url: proxy.url } })
})
afterEach(async () => {
  await rest.close()
  await proxy.cut()
  await redis.close()
})

/** Starts a proxy to Redis that a test can cut, silence and mend. Its address does not change. */
async function startProxy(redisPort: number) {
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

test('every route responds with 503 during an outage of Redis, and sends none of the commands later', async () => {
  expect(await post('/', ['SET', 'counter', '1'])).toEqual({ status: 200, body: { result: 'OK' } })
  await proxy.cut()
  await expect.poll(() => post('/', ['INCR', 'counter'])).toEqual(UNAVAILABLE)
  expect(await post('/pipeline', [['INCR', 'counter'], ['PING']])).toEqual(UNAVAILABLE)
  expect(await post('/multi-exec', [['INCR', 'counter']])).toEqual(UNAVAILABLE)
  expect(await post('/', ['BLPOP', 'queue', 1])).toEqual(UNAVAILABLE)
  await proxy.mend()
  await expect
    .poll(() => post('/', ['GET', 'counter']))
    .toEqual({
      status: 200,
      body: { result: '1' },
    })
})

test('the client throws during an outage of Redis, and works after it', async () => {
  const client = new Redis({ url: rest.url, token: TOKEN, enableTelemetry: false })
  await proxy.cut()
  await expect(client.get('key')).rejects.toThrow('ERR Redis is unavailable')
  await proxy.mend()
  await expect.poll(() => client.ping().catch(() => '')).toBe('PONG')
})

test('a command in progress gets a 503 when the connection to Redis is lost', async () => {
  proxy.silence()
  const answer = post('/', ['PING'])
  await new Promise((resolve) => setImmediate(resolve))
  await proxy.cut()
  expect(await answer).toEqual(UNAVAILABLE)
})

test('a command gets a 503 if Redis does not respond', async () => {
  proxy.silence()
  expect(await post('/', ['PING'])).toEqual(UNAVAILABLE)
})
