/** A guarded app decides alike over Redis and over the memory of `portcullis/testing`. */
import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { GuardOptions } from '../../src/hono/index.ts'
import { type MemoryStoreOfGuards, memoryStore } from '../../src/testing/guard-memory.ts'
import { createIssuer } from '../../src/testing/index.ts'
import { fetchesOf } from '../harness/own-calls.ts'
import { guardWith, ROLES, type Surroundings, surroundings } from '../hono/app.ts'
import { FRAMEWORKS } from './apps.ts'

let given: Surroundings
beforeAll(async () => {
  given = await surroundings()
})
afterEach(() => void vi.useRealTimers())
afterAll(() => given?.redis.close())

function notes(more: Partial<GuardOptions>) {
  const guard = guardWith(given, { limits: { searches: '9/h' }, ...more })
  const reached: string[] = []
  const app = new Hono().use(guard)
  app.get('/notes', guard.require('notes:read'), (c) => {
    reached.push('notes')
    return c.json([])
  })
  app.get('/search', guard.require('notes:read').limit('searches'), (c) => {
    reached.push('search')
    return c.json([])
  })
  app.post('/logout', guard.authenticated(), async (c) => {
    await guard.revoke(c, c.req.query('all') === undefined ? undefined : { subject: 'eve' })
    return c.body(null, 204)
  })
  return { app, reached }
}

type Kind = readonly [name: string, open: () => Promise<GuardOptions['redis']>]

const KINDS: readonly Kind[] = [
  [
    'Redis',
    async () => {
      await given.redis.direct.flushall()
      return given.options.redis
    },
  ],
  ['memory', async () => memoryStore()],
]

describe.each(KINDS)('over %s', (_, open) => {
  test('a caller over a limit is 429, and a refused request takes nothing from the others', async () => {
    const { app, reached } = notes({
      redis: await open(),
      limits: { standard: '3/h', searches: '1/h' },
    })
    const headers = await given.bearer()
    const statuses: number[] = []
    for (const path of ['/search', '/search', '/notes', '/notes', '/notes'])
      statuses.push((await app.request(path, { headers })).status)
    expect(statuses).toEqual([200, 429, 200, 200, 429])
    expect(reached).toEqual(['search', 'notes', 'notes'])
  })

  test('a revocation is in force on the next request of every guard of the store', async () => {
    const redis = await open()
    const [one, two] = [notes({ redis }), notes({ redis })]
    const headers = await given.bearer()
    const others = await given.bearer()
    expect((await two.app.request('/notes', { headers })).status).toBe(200)
    expect((await one.app.request('/logout', { method: 'POST', headers })).status).toBe(204)
    expect((await two.app.request('/notes', { headers })).status).toBe(401)
    expect((await two.app.request('/notes', { headers: others })).status).toBe(200)
    await one.app.request('/logout?all', { method: 'POST', headers: others })
    expect((await two.app.request('/notes', { headers: others })).status).toBe(401)
    expect(two.reached).toEqual(['notes', 'notes'])
  })

  test('an address with many bad credentials is 429, and reaches no handler', async () => {
    const { app, reached } = notes({
      redis: await open(),
      abuse: { exempt: [], authenticationFailures: { limit: 3, windowSeconds: 60 } },
    })
    const bad = { Authorization: 'Bearer a.b.c' }
    const statuses: number[] = []
    for (let sent = 0; sent < 5; sent++)
      statuses.push((await app.request('/notes', { headers: bad })).status)
    expect(statuses.slice(0, 3)).toEqual([401, 401, 401])
    expect(statuses.at(-1)).toBe(429)
    expect(reached).toEqual([])
  })

  test('a caller who exceeds a limit too often is banned from other routes too', async () => {
    const { app, reached } = notes({
      redis: await open(),
      limits: { searches: '1/h' },
      abuse: {
        exempt: [],
        bans: { violations: 1, windowSeconds: 60, seconds: 60, maxSeconds: 60 },
      },
    })
    const headers = await given.bearer()
    const work: Promise<unknown>[] = []
    const context = {
      waitUntil: (done: Promise<unknown>) => void work.push(done),
      passThroughOnException() {},
      props: {},
    }
    const statusOf = async (path: string) => {
      const { status } = await app.request(path, { headers }, {}, context)
      await Promise.all(work)
      return status
    }
    expect(await statusOf('/search')).toBe(200)
    expect(await statusOf('/notes')).toBe(200)
    expect(await statusOf('/search')).toBe(429)
    expect(await statusOf('/notes')).toBe(403)
    expect(reached).toEqual(['search', 'notes'])
  })
})

describe('a guard in memory', () => {
  const limits = { standard: '1/min', searches: '9/h' } as const
  const statusOf = async ({ app }: ReturnType<typeof notes>, headers: HeadersInit) =>
    (await app.request('/notes', { headers })).status

  async function spendOne(store: MemoryStoreOfGuards) {
    const guarded = notes({ redis: store, limits })
    const headers = await given.bearer()
    expect(await statusOf(guarded, headers)).toBe(200)
    expect(await statusOf(guarded, headers)).toBe(429)
    return () => statusOf(guarded, headers)
  }

  test('admits again when its clock has moved', async () => {
    const store = memoryStore()
    const again = await spendOne(store)
    store.advanceSeconds(60)
    expect(await again()).toBe(200)
  })

  test('follows fake timers', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const again = await spendOne(memoryStore())
    vi.advanceTimersByTime(60_000)
    expect(await again()).toBe(200)
  })

  test('refuses a token that has expired by its clock, and accepts a new one of that clock', async () => {
    const store = memoryStore()
    const issuer = await createIssuer({ now: store.now })
    const guarded = notes({ redis: store, issuers: [issuer.entry] })
    const bearer = async () => ({
      Authorization: `Bearer ${await issuer.token({ roles: ['reader'] })}`,
    })
    const headers = await bearer()
    expect(await statusOf(guarded, headers)).toBe(200)
    store.advanceSeconds(3_600)
    expect(await statusOf(guarded, headers)).toBe(401)
    expect(await statusOf(guarded, await bearer())).toBe(200)
  })

  /** Returns what a guard fetches for a request. */
  async function fetchedIn(start: (typeof FRAMEWORKS)[number][1], redis: GuardOptions['redis']) {
    const limits = { expensive: '9/h' } as const
    const headers = await given.bearer(['reader'], { claims: { sub: randomUUID() } })
    let own = 'none:'
    const calls = await fetchesOf(async () => {
      const app = await start({ ...given.options, roles: ROLES, limits, redis })
      own = app.url ?? own
      expect((await app.request('/search', { headers })).status).toBe(200)
      await app.close()
    })
    return calls.filter(([to]) => !`${to}`.startsWith(own))
  }

  test.each(FRAMEWORKS)('calls nothing, also in %s', async (_, start) => {
    expect(await fetchedIn(start, given.options.redis)).not.toEqual([])
    expect(await fetchedIn(start, memoryStore())).toEqual([])
  })

  test.each([
    ['no variable', {}, false],
    ['NODE_ENV=development', { NODE_ENV: 'development' }, false],
    ['NODE_ENV=production in a test', { NODE_ENV: 'production', VITEST: 'true' }, false],
    ['NODE_ENV=test', { NODE_ENV: 'test' }, true],
    ['Vitest', { VITEST: 'true' }, true],
    ['the runner of Node', { NODE_TEST_CONTEXT: 'child-v8' }, true],
  ] as const)('exists in tests only: %s', (_, env, exists) => {
    for (const name of ['NODE_ENV', 'VITEST', 'NODE_TEST_CONTEXT'])
      vi.stubEnv(name, (env as Readonly<Record<string, string>>)[name])
    try {
      if (exists) expect(memoryStore().now()).toBeGreaterThan(0)
      else expect(() => memoryStore()).toThrow(/is for tests: .* Use Redis/)
      expect(memoryStore({ allowOutsideTests: true }).now()).toBeGreaterThan(0)
    } finally {
      vi.unstubAllEnvs()
    }
  })

  test('has a clock that does not go back', () => {
    expect(() => memoryStore().advanceSeconds(-1)).toThrow(TypeError)
  })
})
