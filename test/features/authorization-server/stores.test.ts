import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { Unavailable } from '../../../src/errors.ts'
import { waitSeconds } from '../../../src/features/authorization-server/client-logins.ts'
import { createClientLogins } from '../../../src/features/authorization-server/redis/client-logins.ts'
import { createGrantStore } from '../../../src/features/authorization-server/redis/grant-store.ts'
import type { RedisConnection, RedisReply } from '../../../src/redis/connection.ts'
import { authorizationServerKeys, DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

const PUBLIC_URL = 'https://gateway.test'
const login = { clientId: crypto.randomUUID(), address: '192.0.2.1' }
const proof = { thumbprint: 'x', replayId: 'x', replayTtlSeconds: 80 }
const loginsOver = (rest: RedisConnection) =>
  createClientLogins({ redis: rest, configured: [], publicUrl: PUBLIC_URL })

describe.each(['auto', 'embedded'] as const)('over Redis (%s)', (prefer) => {
  let redis: TestRedis
  let rest: RedisConnection
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  test('failures are counted by address and by client, and every counter expires', async () => {
    const logins = loginsOver(rest)
    for (let count = 1; count <= 3; count++) {
      const { byAddress, byClient } = await logins.failed(login, true)
      expect([byAddress.count, byClient.count]).toEqual([count, count])
      expect(byAddress.resetSeconds).toBeLessThanOrEqual(60)
    }
    await logins.failed({ ...login, address: '192.0.2.2' }, true)
    const alone = await logins.failed({ ...login, address: '192.0.2.3' }, false)
    expect([alone.byAddress.count, alone.byClient.count]).toEqual([1, 0])
    const { byAddress, byClient, knownForSeconds } = await logins.begin(login)
    expect([byAddress.count, byClient.count]).toEqual([3, 4])
    expect(knownForSeconds).toBeLessThanOrEqual(0)
  })

  test('an authentication begins with one call, and a known address is stored for a day', async () => {
    const logins = loginsOver(rest)
    expect(await logins.succeeded(login, { remember: true })).toBe(true)
    const before = redis.calls()
    const { knownForSeconds, client } = await logins.begin(login)
    expect(redis.calls() - before).toBe(1)
    expect(client).toBeUndefined()
    expect(knownForSeconds).toBeGreaterThan(86_000)
    expect((await logins.begin({ ...login, address: '192.0.2.2' })).knownForSeconds).toBe(-2)
  })

  test('of many simultaneous uses of one assertion, exactly one succeeds', async () => {
    const use = { id: 'x', ttlSeconds: 60 }
    const logins = loginsOver(rest)
    const uses = Array.from({ length: 10 }, () => logins.succeeded(login, { remember: false, use }))
    expect((await Promise.all(uses)).filter(Boolean)).toHaveLength(1)
    expect(
      await redis.direct.ttl(authorizationServerKeys(DEFAULT_KEYS).clientAssertion + use.id),
    ).toBeGreaterThan(0)
  })

  test('a grant reads its state in one call, and a proof is accepted once', async () => {
    const store = createGrantStore(rest)
    await redis.direct.set('pc:cutoff:a', '5')
    const before = redis.calls()
    const facts = await store.consult({ keys: ['pc:cutoff:a', 'pc:cutoff:b'], proof })
    expect(redis.calls() - before).toBe(1)
    expect(facts).toEqual({ values: ['5', null], proofIsNew: true })
    expect(await store.consult({ keys: [], proof })).toEqual({ values: [], proofIsNew: false })
    expect(await redis.direct.ttl(DEFAULT_KEYS.proof + proof.replayId)).toBeGreaterThan(70)
    expect(await store.consult({ keys: [] })).toEqual({ values: [], proofIsNew: true })
  })

  test('a key of the wrong type is an outage, not a missing key [R06, R12]', async () => {
    await redis.direct.lpush('pc:cutoff:a', 'x')
    const consulted = createGrantStore(rest).consult({ keys: ['pc:cutoff:a', 'pc:cutoff:b'] })
    await expect(consulted).rejects.toBeInstanceOf(Unavailable)
    await redis.direct.lpush(`pc:client-failures:address:${login.address}`, 'x')
    await expect(loginsOver(rest).begin(login)).rejects.toBeInstanceOf(Unavailable)
    for (const kind of ['client', 'subject'] as const) {
      await redis.direct.flushall()
      await redis.direct.lpush(
        await revokedBeforeKey(DEFAULT_KEYS, kind, PUBLIC_URL, login.clientId),
        'x',
      )
      await expect(loginsOver(rest).begin(login)).rejects.toBeInstanceOf(Unavailable)
    }
  })

  test('an authentication returns the cutoffs of the client and of its subject, and no others', async () => {
    const keys = await Promise.all(
      (['client', 'subject', 'tenant'] as const).map((kind) =>
        revokedBeforeKey(DEFAULT_KEYS, kind, PUBLIC_URL, login.clientId),
      ),
    )
    for (const [at, key] of keys.entries()) await redis.direct.set(key, 5 + at)
    await redis.direct.set(
      await revokedBeforeKey(DEFAULT_KEYS, 'client', 'https://other.test', login.clientId),
      9,
    )
    const { revokedBefore } = await loginsOver(rest).begin(login)
    expect([...revokedBefore]).toEqual([
      [keys[0], '5'],
      [keys[1], '6'],
    ])
    const { revokedBefore: none } = await loginsOver(rest).begin({ ...login, clientId: 'x' })
    expect([...none.values()]).toEqual([null, null])
  })
})

describe('a malformed reply of Redis is an outage, never a refusal [R06]', () => {
  const replying = (...replies: RedisReply[]): RedisConnection => ({
    keys: DEFAULT_KEYS,
    send: async () => replies,
  })
  const good = [null, null, -2, null, -2, -2, null, null, null, null].map((result) => ({ result }))

  test('well-formed replies are accepted', async () => {
    await expect(loginsOver(replying(...good)).begin(login)).resolves.toMatchObject({
      client: undefined,
    })
  })

  test.each(good.map((_, index) => index))('at position %i of an authentication', async (index) => {
    for (const malformed of [{ error: 'ERR' }, { result: {} }, { result: 'x' }, { result: true }]) {
      const replies = good.map((reply, at) => (at === index ? malformed : reply))
      await expect(loginsOver(replying(...replies)).begin(login)).rejects.toBeInstanceOf(
        Unavailable,
      )
    }
  })

  test('a number in place of a cutoff, which Redis returns as text', async () => {
    for (const index of [8, 9]) {
      const replies = good.map((reply, at) => (at === index ? { result: 5 } : reply))
      await expect(loginsOver(replying(...replies)).begin(login)).rejects.toBeInstanceOf(
        Unavailable,
      )
    }
  })

  test('for failures, assertions, cutoffs and proofs', async () => {
    for (const malformed of [null, 1, [], [1], [1, 60, 1, 'x'], 'OK'])
      await expect(
        loginsOver(replying({ result: malformed })).failed(login, true),
      ).rejects.toBeInstanceOf(Unavailable)
    const use = { id: 'k', ttlSeconds: 1 }
    for (const malformed of [1, 'ok', {}, undefined])
      await expect(
        loginsOver(replying({ result: malformed })).succeeded(login, { remember: false, use }),
      ).rejects.toBeInstanceOf(Unavailable)
    for (const malformed of [1, 'ok', {}, undefined])
      await expect(
        createGrantStore(replying({ result: malformed })).consult({ keys: [], proof }),
      ).rejects.toBeInstanceOf(Unavailable)
    for (const [values, existing] of [
      [null, 0],
      [[null], 1],
      [[1], 1],
      [['1'], null],
      [[], 0],
    ])
      await expect(
        createGrantStore(replying({ result: values }, { result: existing })).consult({
          keys: ['k'],
        }),
      ).rejects.toBeInstanceOf(Unavailable)
  })
})

test('the wait depends on the failures by address and by client [S44]', () => {
  const few = { count: 19, resetSeconds: 50 }
  const none = { count: 0, resetSeconds: 1 }
  const waits = (state: object) =>
    waitSeconds({ byAddress: none, byClient: none, knownForSeconds: 0, ...state })
  expect(waits({})).toBeUndefined()
  expect(waits({ byAddress: few })).toBeUndefined()
  expect(waits({ byAddress: { ...few, count: 20 } })).toBe(50)
  const known = { knownForSeconds: 60 }
  expect(waits({ byAddress: { ...few, count: 99 }, ...known })).toBeUndefined()
  expect(waits({ byAddress: { ...few, count: 100 }, ...known })).toBe(50)
  const many = { byClient: { count: 100, resetSeconds: 40 } }
  expect(waits(many)).toBe(40)
  expect(waits({ ...many, knownForSeconds: 1 })).toBeUndefined()
  expect(waits({ byClient: { count: 99, resetSeconds: 40 } })).toBeUndefined()
})
