/** Responses that the handlers of a guarded app stream end with the rights of their callers. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createBanList } from '../../src/access/abuse/redis/bans.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { startWorkerd } from '../origin/workerd.ts'
import app from './streams-app.ts'

interface Serving {
  readonly port: number
  stop(): Promise<void>
}

type Vars = Readonly<Record<string, string>>

const startInWorkerd = (vars: Vars): Promise<Serving> =>
  startWorkerd({ entry: join(import.meta.dirname, 'streams-app.ts'), vars })

async function startInNode(vars: Vars): Promise<Serving> {
  for (const [name, value] of Object.entries(vars)) vi.stubEnv(name, value)
  // It would replace `Response` in this process for good, also for the tests of other files.
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      if ('closeAllConnections' in server) server.closeAllConnections()
      server.close()
      vi.unstubAllEnvs()
    },
  }
}

/** Longer than a machine that runs other tests needs to open streams. */
const LIFE_SECONDS = 4
const STREAMS = [
  ['GET', '/events'],
  ['GET', '/stream'],
  ['POST', '/body'],
  ['GET', '/undeclared'],
] as const

describe.each([
  ['workerd', startInWorkerd],
  ['Node', startInNode],
] as const)('in %s', (_, start) => {
  let key: TestKey
  let redis: TestRedis
  let serving: Serving
  beforeAll(async () => {
    key = await createKey('streams')
    redis = await startTestRedis()
    await redis.direct.flushall()
    serving = await start({
      ...redisVars(redis),
      JWKS: JSON.stringify({ keys: [key.publicJwk] }),
    })
  })
  afterAll(async () => {
    await serving?.stop()
    await redis?.close()
  })

  /** Opens a response. `ended` resolves to whether it was complete. */
  async function open(method: string, path: string, claims?: Readonly<Record<string, unknown>>) {
    const leaving = new AbortController()
    const token = claims && (await mint(key, { claims }))
    const response = await fetch(`http://127.0.0.1:${serving.port}${path}`, {
      method,
      signal: leaving.signal,
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
    })
    let bytes = 0
    const read = async () => {
      for await (const chunk of response.body ?? []) bytes += chunk.byteLength
      return true
    }
    const ended = read().catch(() => false)
    onTestFinished(() => leaving.abort())
    return { response, ended, bytes: () => bytes }
  }

  const openAll = (claims: Readonly<Record<string, unknown>>) =>
    Promise.all(STREAMS.map(([method, path]) => open(method, path, claims)))

  const endsOf = (streams: Awaited<ReturnType<typeof openAll>>) =>
    Promise.all(streams.map(({ ended }) => ended))

  async function expectMore({ bytes }: Awaited<ReturnType<typeof open>>): Promise<void> {
    const before = bytes()
    await expect.poll(bytes).toBeGreaterThan(before)
  }

  test('streams break off when the token expires, after a revocation and after a ban; others stay open', async () => {
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })
    const exp = Math.floor(Date.now() / 1_000) + LIFE_SECONDS
    const expiring = await openAll({ sub: 'expiring', exp })
    const revoked = await openAll({ sub: 'revoked' })
    const banned = await openAll({ sub: 'banned' })
    const other = await open('GET', '/events', { sub: 'other' })
    const anonymous = await open('GET', '/public')
    for (const { response, bytes } of [...expiring, ...revoked, ...banned, other, anonymous]) {
      expect(response.ok).toBe(true)
      await expect.poll(bytes).toBeGreaterThan(0)
    }
    expect(revoked[2]?.response.status).toBe(201)
    expect(revoked[3]?.response.headers.get('x-own')).toBe('kept')
    await createRevocations(rest, Date.now).revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: 'revoked',
      atSeconds: Date.now() / 1_000,
      ttlSeconds: 600,
    })
    await createBanList(rest, Date.now).create({
      kind: 'subject',
      value: 'banned',
      issuer: ISSUER,
      issuers: [ISSUER],
      createdBy: 'olga',
      seconds: 600,
    })
    const cut = STREAMS.map(() => false)
    expect(await endsOf(expiring)).toEqual(cut)
    expect(await endsOf(revoked)).toEqual(cut)
    expect(await endsOf(banned)).toEqual(cut)
    await expectMore(other)
    await expectMore(anonymous)
  })

  test.each(['/text', '/json'])('%s is complete, and costs one call to Redis', async (path) => {
    await (await open('GET', path, { sub: 'quick' })).ended
    const before = redis.calls()
    const { response, ended, bytes } = await open('GET', path, { sub: 'quick' })
    expect([response.status, await ended, bytes() > 0]).toEqual([200, true, true])
    expect(redis.calls() - before).toBe(1)
  })

  // The last one: afterwards the circuit breaker refuses requests for some seconds.
  test('streams break off when Redis fails for longer than the grace', async () => {
    const streams = await openAll({ sub: 'unlucky' })
    redis.setAnswering(false)
    try {
      expect(await endsOf(streams)).toEqual(STREAMS.map(() => false))
    } finally {
      redis.setAnswering(true)
    }
  })
})
