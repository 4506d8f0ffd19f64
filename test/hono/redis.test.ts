/** A guard over `redis()` from `portcullis/redis`: a URL, a client of ioredis, and a client of node-redis. */
import { createServer, type Server } from 'node:net'
import { createClient } from '@redis/client'
import { Hono } from 'hono'
import { Cluster, Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startRedis } from '../../dev/redis.ts'
import { Misconfigured } from '../../src/errors.ts'
import { type AppRedis, redis } from '../../src/runtimes/node/redis/index.ts'
import { freePort } from '../harness/process.ts'
import { guardWith, type Surroundings, surroundings } from './app.ts'

let given: Surroundings
const ends: (() => unknown)[] = []
beforeAll(async () => {
  given = await surroundings()
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})
afterAll(() => given?.redis.close())

const STRICT = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false }

function notes(client: AppRedis) {
  ends.push(() => client.close())
  const limits = {
    standard: { limit: 3, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  } as const
  const guard = guardWith(given, { redis: client, limits })
  const reached: string[] = []
  const app = new Hono().use(guard)
  app.get('/notes', guard.require('notes:read'), (c) => {
    reached.push('read')
    return c.json([])
  })
  return { app, reached }
}

const KINDS: Readonly<Record<string, (url: string) => Promise<AppRedis>>> = {
  async 'a URL'(url) {
    return redis(url, { timeoutMs: 1_000 })
  },
  async 'a client of ioredis'(url) {
    const client = new Redis(url, { ...STRICT, lazyConnect: true, retryStrategy: () => null })
    client.on('error', () => {})
    ends.push(() => client.disconnect())
    await client.connect().catch(() => {})
    return redis(client, { timeoutMs: 1_000 })
  },
  async 'a client of node-redis'(url) {
    const client = createClient({
      url,
      RESP: 2,
      disableOfflineQueue: true,
      socket: { reconnectStrategy: false },
    })
    client.on('error', () => {})
    ends.push(() => client.destroy())
    await client.connect().catch(() => {})
    return redis(client, { timeoutMs: 1_000 })
  },
}

describe.each(Object.entries(KINDS))('%s', (_, connect) => {
  test('admits, and counts exactly, also at the same time', async () => {
    await given.redis.direct.flushall()
    const { app, reached } = notes(await connect(given.redis.redisUrl))
    const headers = await given.bearer()
    const both = await Promise.all([1, 2].map(() => app.request('/notes', { headers })))
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    const last = [
      await app.request('/notes', { headers }),
      await app.request('/notes', { headers }),
    ]
    expect(last.map(({ status }) => status)).toEqual([200, 429])
    expect(reached.length).toBe(3)
  })

  test('answers 503 at once if nothing listens, and reaches no handler', async () => {
    const { app, reached } = notes(await connect(`redis://127.0.0.1:${await freePort()}`))
    const headers = await given.bearer()
    const { status } = await app.request('/notes', { headers })
    expect(status).toBe(503)
    expect(reached).toEqual([])
  })
})

test.each([
  [
    'ioredis',
    (port: number) => {
      const client = new Redis({ ...STRICT, port })
      client.on('error', () => {})
      ends.push(() => client.disconnect())
      return client
    },
  ],
  [
    'node-redis',
    (port: number) => {
      const client = createClient({ RESP: 2, disableOfflineQueue: true, socket: { port } })
      client.on('error', () => {})
      ends.push(() => client.destroy())
      client.connect().catch(() => {})
      return client
    },
  ],
])(
  'through %s, a reply to nothing gives no call the reply of another one, and ends the socket',
  async (_, clientAt) => {
    const server = await startRedis()
    const { port } = new URL(server.url)
    const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: Number(port) } })
    ends.push(server.close, proxy.close)
    const connection = redis(clientAt(proxy.port), { timeoutMs: 5_000 })
    const names = Array.from({ length: 20 }, (_, n) => `n${n}`)
    const read = async (name: string) =>
      (await connection.send([['GET', name]]).catch(() => undefined))?.[0]?.result
    await expect
      .poll(() => connection.send(names.map((name) => ['SET', name, name])).catch(() => 'closed'))
      .toHaveLength(20)
    await proxy.set({ kind: 'insert', text: ':1\r\n' })
    for (const [n, found] of (await Promise.all(names.map(read))).entries())
      expect([undefined, `n${n}`]).toContain(found)
    await proxy.set({ kind: 'none' })
    await expect.poll(() => Promise.all(names.map(read))).toEqual(names)
  },
)

test('a server that never answers is 503 within the deadline, and does not hang', async () => {
  const silent: Server = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  ends.push(() => silent.close())
  const { port } = silent.address() as { port: number }
  const { app } = notes(redis(`redis://127.0.0.1:${port}`, { timeoutMs: 250 }))
  const { status } = await app.request('/notes', { headers: await given.bearer() })
  expect(status).toBe(503)
})

describe('refuses, in one sentence,', () => {
  const idle = { lazyConnect: true }
  test.each<[string, () => unknown, RegExp]>([
    ['a text that is no URL of Redis', () => 'http://127.0.0.1', /must be redis:/],
    ['something else', () => ({}), /must be a URL/],
    ['ioredis with its defaults', () => new Redis(idle), /enableOfflineQueue: false/],
    [
      'ioredis that resends',
      () => new Redis({ ...idle, enableOfflineQueue: false }),
      /autoResendUnfulfilledCommands: false/,
    ],
    [
      'ioredis with a prefix',
      () => new Redis({ ...idle, ...STRICT, keyPrefix: 'app:' }),
      /keyPrefix/,
    ],
    ['ioredis that reads only', () => new Redis({ ...idle, ...STRICT, readOnly: true }), /replica/],
    ['a cluster of ioredis', () => new Cluster([{ port: 1 }], idle), /cluster/],
    ['node-redis with its defaults', () => createClient(), /disableOfflineQueue: true/],
    ['node-redis with RESP3', () => createClient({ RESP: 3, disableOfflineQueue: true }), /RESP/],
  ])('%s', (_, create, expected) => {
    const client = create()
    const error = catchError(() => redis(client as string))
    expect(error).toBeInstanceOf(Misconfigured)
    expect(error?.message).toMatch(expected)
    expect(error?.message.split('\n')).toHaveLength(2)
  })
})

describe('the settings', () => {
  const RANGES = { timeoutMs: [10, 5_000], fenceMs: [400, 60_000], replicasAcked: [0, 5] } as const
  const ODD = [NaN, Infinity, -Infinity, -1, 0.5, 2 ** 31, '', '800', null, true, 800n]
  const WRONG: readonly (readonly [name: string, value: unknown])[] = [
    ...Object.entries(RANGES).flatMap(([name, [least, most]]) =>
      [...ODD, least - 1, most + 1].map((value) => [name, value] as const),
    ),
    ...['', 'pc', 'PC:', '{x}:', 5, null].map((value) => ['keyPrefix', value] as const),
    ...['true', 1, null].map((value) => ['acceptsEviction', value] as const),
    ['fenceMS', 800],
  ]
  const open = (settings: object) => redis('redis://127.0.0.1:1', settings)
  test.each(WRONG)('%s: %s is refused, and the sentence names the setting', (name, value) => {
    const error = catchError(() => open({ [name]: value }))
    expect(error).toBeInstanceOf(Misconfigured)
    expect(error?.message).toContain(name)
    expect(error?.message.split('\n')).toHaveLength(2)
  })

  test('the ends of each range are accepted, and so is no value', () => {
    for (const [name, range] of Object.entries(RANGES))
      for (const value of [...range, undefined]) open({ [name]: value }).close()
    open({ keyPrefix: 'pc-staging:', acceptsEviction: true }).close()
  })
})

function catchError(act: () => unknown): Error | undefined {
  try {
    act()
  } catch (error) {
    return error as Error
  }
  return undefined
}
