/** Automatic bans: who is refused too often, by the whole gateway over a real Redis. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type AbuseDefinition,
  type BanDefinition,
  DEFAULT_BANS,
} from '../../src/admission/abuse-definition.ts'
import { createGateway } from '../../src/app.ts'
import { definePolicy } from '../../src/policy.ts'
import { createServices } from '../../src/services.ts'
import { createBanList } from '../../src/stores/upstash/bans.ts'
import { createRedisRest } from '../../src/stores/upstash/rest.ts'
import { createViolationCounter } from '../../src/stores/upstash/violations.ts'
import { newAddress } from '../harness/address.ts'
import { recordsOf, startControlled } from '../harness/control.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../harness/issuer.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { complaintsAbout } from '../harness/redis-dump.ts'

const key = await createKey('k1')
const origin = await startControlled(() => ({ status: 200, headers: {}, body: 'ok' }))
const originCalls = async () => (await recordsOf(origin)).length
const HOUR = 3_600

const token = (sub: string = crypto.randomUUID()) => mint(key, { claims: { sub } })

describe('automatic bans', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(async () => {
    await origin.close()
    await redis.close()
  })
  beforeEach(() => redis.direct.flushall())

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })
  const bans = () => createBanList(rest(), Date.now)
  const listed = async () => (await bans().list({ limit: 100 })).items

  /** A gateway as it ships, with what is told of its policy. */
  function gateway(rule: BanDefinition | false = {}, abuse: AbuseDefinition = {}) {
    const services = createServices({
      UPSTASH_REDIS_REST_URL: redis.url,
      UPSTASH_REDIS_REST_TOKEN: redis.token,
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
    })
    const once = { limit: 1, windowSeconds: 86_400, onUnavailable: 'deny' } as const
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { mine: { ...once, by: 'subject' }, from: { ...once, by: 'address' } },
      routes: [
        { method: 'GET', path: '/free', permission: 'orders:read' },
        { method: 'GET', path: '/mine', permission: 'orders:read', limits: ['mine'] },
        { method: 'GET', path: '/public', anonymous: true, limits: ['from'] },
      ],
      abuse: { bans: rule, ...abuse },
    })
    const app = createGateway({ ...services, auditSink: { record() {} } }, policy)
    /** Sends a request, and waits for what it left behind. */
    return async function ask(path: string, address: string, credential?: string) {
      const behind: Promise<unknown>[] = []
      const context = {
        waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
        passThroughOnException() {},
        props: {},
      }
      const headers = {
        'cf-connecting-ip': address,
        ...(credential && { authorization: `Bearer ${credential}` }),
      }
      const response = await app.request(`https://gateway.test${path}`, { headers }, {}, context)
      await Promise.all(behind)
      return response
    }
  }

  test('S44: five bad credentials ban their address, for an hour, everywhere, on record', async () => {
    const [ask, other, address] = [gateway({}), gateway({}), newAddress()]
    const good = await token()
    for (let count = 0; count < 4; count++)
      expect((await ask('/free', address, 'a.b.c')).status).toBe(401)
    expect((await other('/free', address, good)).status).toBe(200)
    expect((await other('/free', address, 'a.b.c')).status).toBe(401)
    const before = await originCalls()
    for (const each of [ask, other]) {
      const response = await each('/free', address, good)
      expect(response.status).toBe(403)
      const seconds = Number(response.headers.get('retry-after'))
      expect(seconds).toBeGreaterThan(HOUR - 60)
      expect(seconds).toBeLessThanOrEqual(HOUR)
      expect(await response.json()).toMatchObject({ code: 'banned' })
    }
    expect(await originCalls()).toBe(before)
    expect((await ask('/free', newAddress(), good)).status).toBe(200)

    const [ban, ...more] = await listed()
    expect(more).toEqual([])
    expect(ban).toMatchObject({ kind: 'address', createdBy: 'portcullis' })
    expect(ban?.reason).toBe('5 violations in 600 s')
    expect(await bans().remove(ban?.id ?? '')).toBe(true)
    expect((await ask('/free', address, good)).status).toBe(200)
  })

  test('a known caller over its limit is banned as a subject, wherever it comes from', async () => {
    const [first, second] = [gateway({ violations: 2 }), gateway({ violations: 2 })]
    const [alice, bob, address] = [await token('alice'), await token('bob'), newAddress()]
    expect((await first('/mine', address, alice)).status).toBe(200)
    expect((await first('/mine', address, alice)).status).toBe(429)
    expect((await second('/mine', address, alice)).status).toBe(429)
    expect((await first('/free', newAddress(), alice)).status).toBe(403)
    expect((await first('/free', address, bob)).status).toBe(200)
    expect(await listed()).toMatchObject([{ kind: 'subject', value: 'alice', issuer: ISSUER }])
  })

  test('an anonymous caller over a limit is banned by its address', async () => {
    const [ask, address] = [gateway({ violations: 1 }), newAddress()]
    expect((await ask('/public', address)).status).toBe(200)
    expect((await ask('/public', address)).status).toBe(429)
    expect((await ask('/free', address, await token())).status).toBe(403)
  })

  test('a flood of refusals out of memory is one violation, and writes nothing', async () => {
    const [ask, address] = [gateway({ violations: 3 }), newAddress()]
    const alice = await token('alice')
    for (const status of [200, 429])
      expect((await ask('/mine', address, alice)).status).toBe(status)
    const before = redis.calls()
    for (let count = 0; count < 50; count++)
      expect((await ask('/mine', address, alice)).status).toBe(429)
    expect(redis.calls()).toBe(before)
    expect(await listed()).toEqual([])
  })

  test('exempt addresses, and the one that nobody knows, are never banned', async () => {
    const list = ['192.0.2.0/24', '203.0.113.7', '2001:db8:1::/48', '2001:db8:2:3::1']
    const ask = gateway({ violations: 1 }, { exempt: list })
    const exempt = ['192.0.2.200', '203.0.113.7', '2001:db8:1:ffff::9', '2001:db8:2:3::2', 'x']
    for (const address of exempt) {
      expect((await ask('/free', address, 'a.b.c')).status).toBe(401)
      expect((await ask('/free', address, await token())).status, address).toBe(200)
    }
    for (const address of ['192.0.3.1', '203.0.113.8', '2001:db8:2:4::1', '::ffff:203.0.113.9']) {
      expect((await ask('/free', address, 'a.b.c')).status).toBe(401)
      expect((await ask('/free', address, await token())).status, address).toBe(403)
    }
    expect((await listed()).length).toBe(4)
  })

  test('nobody is banned where the policy turns bans off', async () => {
    const [ask, address] = [gateway(false), newAddress()]
    for (let count = 0; count < 10; count++) await ask('/free', address, 'a.b.c')
    expect((await ask('/free', address, await token())).status).toBe(200)
    expect(await redis.direct.keys('pc:violations:*')).toEqual([])
  })

  test('R01: without Redis nobody is banned, and no answer changes', async () => {
    const [ask, address] = [gateway({ violations: 1 }), newAddress()]
    redis.setAnswering(false)
    expect((await ask('/free', address, 'a.b.c')).status).toBe(401)
    redis.setAnswering(true)
    expect((await ask('/free', address, await token())).status).toBe(200)
    expect((await ask('/free', address, 'a.b.c')).status).toBe(401)
    expect((await ask('/free', address, await token())).status).toBe(403)
  })

  test('R18: each ban is twice as long as the last, up to a day; and every key has an end', async () => {
    let nowMs = Date.now()
    const counter = createViolationCounter(rest(), () => nowMs)
    const rule = { ...DEFAULT_BANS, violations: 2 }
    const offender = { kind: 'subject', issuer: ISSUER, value: 'x:*'.repeat(200) } as const
    const earned: number[] = []
    for (let count = 0; count < 7; count++) {
      expect(await counter.count(offender, rule)).toBe(0)
      const seconds = await counter.count(offender, rule)
      earned.push(seconds)
      nowMs += seconds * 1000
    }
    const hours = [1, 2, 4, 8, 16, 24, 24]
    expect(earned).toEqual(hours.map((each) => each * HOUR))
    await counter.count(offender, rule)
    expect(await complaintsAbout(redis.direct)).toEqual([])
    for (const each of await redis.direct.keys('*')) expect(each.length).toBeLessThan(500)
    // Written by a clock that was days ahead; all but the last have ended by it.
    expect(await redis.direct.zcard('pc:bans')).toBe(1)
    expect(await redis.direct.zcard('pc:bans:ends')).toBe(1)
    // Nobody waits for days here: what the clock of Redis would have removed is removed by hand.
    await redis.direct.del(await redis.direct.keys('pc:automatic-bans:*'))
    expect(await counter.count(offender, rule)).toBe(HOUR)
  })

  test('R18: what comes while a ban holds makes it no longer, and the next no longer either', async () => {
    let nowMs = Date.now()
    const counter = createViolationCounter(rest(), () => nowMs)
    const offender = { kind: 'address', value: newAddress() } as const
    const rule = { ...DEFAULT_BANS, violations: 1 }
    expect(await counter.count(offender, rule)).toBe(HOUR)
    nowMs += 1_000_000
    for (let count = 0; count < 10; count++)
      expect(await counter.count(offender, rule)).toBe(HOUR - 1_000)
    expect(await listed()).toHaveLength(1)
    nowMs += (HOUR - 1_000) * 1000
    expect(await counter.count(offender, rule)).toBe(2 * HOUR)
  })

  test('R18: 50 violations at once in as many isolates are one ban', async () => {
    const offender = { kind: 'address', value: newAddress() } as const
    const counts = Array.from({ length: 50 }, () =>
      createViolationCounter(rest(), Date.now).count(offender, DEFAULT_BANS),
    )
    const seconds = await Promise.all(counts)
    expect(seconds.filter((each) => each === 0)).toHaveLength(DEFAULT_BANS.violations - 1)
    expect(await listed()).toMatchObject([{ kind: 'address', value: offender.value }])
  })
})
