/** Automatic bans of callers who are refused too often, by the whole gateway over a real Redis. */
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import * as z from 'zod'
import { MIN_CHECKS_AT_ONCE } from '../../../src/access/abuse/authentication-failures.ts'
import {
  type AbuseDefinition,
  type BanDefinition,
  DEFAULT_BANS,
  DEFAULT_FAILURES,
} from '../../../src/access/abuse/definition.ts'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createViolationCounter } from '../../../src/access/abuse/redis/violations.ts'
import {
  createViolations,
  LIMIT_VIOLATION_MS,
  type Offender,
  type ViolationCounter,
} from '../../../src/access/abuse/violations.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { newAddress } from '../../harness/address.ts'
import { recordsOf, startControlled } from '../../harness/control.ts'
import { startGateway } from '../../harness/gateway.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { complaintsAbout } from '../../harness/redis-dump.ts'

const origin = await startControlled(() => ({ status: 200, headers: {}, body: 'ok' }))
const whole = await startGateway({ origin, audience: [AUDIENCE] })
const { redis, key } = whole
const originCalls = async () => (await recordsOf(origin)).length
const HOUR = 3_600

/** Counts a bad credential. Returns the seconds that a ban lasts. */
async function countOf(counter: ViolationCounter, by: Offender, rule: Required<BanDefinition>) {
  return (await counter.count(by, 'credential', rule)).banSeconds
}

const token = (sub: string = crypto.randomUUID()) => mint(key, { claims: { sub } })

describe('automatic bans', () => {
  afterAll(whole.close)
  beforeEach(() => redis.direct.flushall())

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const bans = () => createBanList(rest(), Date.now)
  const listed = async () => (await bans().list({ limit: 100 })).items

  /** Creates a gateway as it is shipped, with the warnings on its policy. */
  function gateway(rule: BanDefinition | false = {}, abuse: AbuseDefinition = {}) {
    const once = { limit: 1, windowSeconds: 86_400, onUnavailable: 'deny' } as const
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { mine: { ...once, by: 'subject' }, from: { ...once, by: 'address' } },
      routes: [
        { method: 'GET', path: '/free', permission: 'orders:read' },
        { method: 'GET', path: '/mine', permission: 'orders:read', limits: ['mine'] },
        { method: 'GET', path: '/public', anonymous: true, limits: ['from'] },
        { method: 'GET', path: '/open', anonymous: true, inspect: {} },
        {
          method: 'POST',
          path: '/rpc',
          permission: 'orders:read',
          inspect: { jsonRpc: { methods: { ping: true } } },
          input: { query: z.strictObject({ page: z.string().optional() }) },
        },
      ],
      abuse: { bans: rule, ...abuse },
    })
    return whole.client(policy)
  }

  test('five bad credentials ban their address for an hour, everywhere, with an audit event [S44]', async () => {
    const [{ send }, { send: other }, address] = [gateway(), gateway(), newAddress()]
    const good = await token()
    for (let count = 0; count < 4; count++)
      expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    expect((await other('/free', address, good)).status).toBe(200)
    expect((await other('/free', address, 'a.b.c')).status).toBe(401)
    const before = await originCalls()
    for (const each of [send, other]) {
      const response = await each('/free', address, good)
      expect(response.status).toBe(403)
      const seconds = Number(response.headers.get('retry-after'))
      expect(seconds).toBeGreaterThan(HOUR - 60)
      expect(seconds).toBeLessThanOrEqual(HOUR)
      expect(await response.json()).toMatchObject({ code: 'banned' })
    }
    expect(await originCalls()).toBe(before)
    expect((await send('/free', newAddress(), good)).status).toBe(200)

    const [ban, ...more] = await listed()
    expect(more).toEqual([])
    expect(ban).toMatchObject({ kind: 'address', createdBy: 'portcullis' })
    expect(ban?.reason).toBe('5 violations in 600 s')
    expect(await bans().remove(ban?.id ?? '')).toBe(true)
    expect((await send('/free', address, good)).status).toBe(200)
  })

  /** Ages the counts of violations in Redis by `ms`. */
  async function age(ms: number): Promise<void> {
    for (const name of await redis.direct.keys('pc:violations:*')) {
      const [count, began, latest] = (await redis.direct.get(name))?.split(' ').map(Number) ?? []
      const text = `${count} ${Number(began) - ms} ${Math.max(0, Number(latest) - ms)}`
      await redis.direct.set(name, text, 'KEEPTTL')
    }
  }

  test('a known caller over its limit is banned as a subject, at any address', async () => {
    const [{ send: first }, { send: second }] = [
      gateway({ violations: 2 }),
      gateway({ violations: 2 }),
    ]
    const [alice, bob, address] = [await token('alice'), await token('bob'), newAddress()]
    expect((await first('/mine', address, alice)).status).toBe(200)
    expect((await first('/mine', address, alice)).status).toBe(429)
    await age(LIMIT_VIOLATION_MS)
    expect((await second('/mine', address, alice)).status).toBe(429)
    expect((await first('/free', newAddress(), alice)).status).toBe(403)
    expect((await first('/free', address, bob)).status).toBe(200)
    expect(await listed()).toMatchObject([{ kind: 'subject', value: 'alice', issuer: ISSUER }])
  })

  test('a burst over a limit is one violation in five seconds, over twenty isolates [S44]', async () => {
    const isolates = Array.from({ length: 20 }, () => gateway({ violations: 10 }))
    const [alice, address] = [await token('alice'), newAddress()]
    expect((await isolates[0]?.send('/mine', address, alice))?.status).toBe(200)
    const before = await originCalls()
    const startMs = performance.now()
    const answers = await Promise.all(isolates.map(({ send }) => send('/mine', address, alice)))
    const most = 1 + Math.floor((performance.now() - startMs) / LIMIT_VIOLATION_MS)
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(429))
    expect(await originCalls()).toBe(before)
    expect(await listed()).toEqual([])
    const [name = ''] = await redis.direct.keys('pc:violations:*')
    const count = Number((await redis.direct.get(name))?.split(' ')[0])
    expect(count).toBeGreaterThanOrEqual(1)
    expect(count).toBeLessThanOrEqual(most)
  })

  test('an anonymous caller over a limit is banned by its address, if bans refuse everything', async () => {
    for (const refuses of ['credentials', 'everything'] as const) {
      const [{ send }, address] = [gateway({ violations: 1, refuses }), newAddress()]
      expect((await send('/public', address)).status).toBe(200)
      expect((await send('/public', address)).status).toBe(429)
      const status = refuses === 'everything' ? 403 : 200
      expect((await send('/free', address, await token())).status).toBe(status)
    }
    expect(await listed()).toMatchObject([{ refuses: 'everything' }])
  })

  test.each(['tenant', 'client', 'address', () => 'everybody'] as const)(
    'no caller is banned for a window that others have spent (by %s) [S44]',
    async (by) => {
      const rule = { limit: 1, windowSeconds: 86_400, by, onUnavailable: 'deny' } as const
      const policy = definePolicy({
        roles: { reader: ['orders:read'] },
        limits: { shared: rule },
        routes: [
          { method: 'GET', path: '/free', permission: 'orders:read' },
          { method: 'GET', path: '/shared', permission: 'orders:read', limits: ['shared'] },
        ],
        abuse: { bans: { violations: 1 } },
      })
      const [{ send }, address] = [whole.client(policy), newAddress()]
      const [mallory, alice] = await Promise.all(
        ['mallory', 'alice'].map((sub) =>
          mint(key, { claims: { sub, tenant: 'acme', client_id: 'app' } }),
        ),
      )
      expect((await send('/shared', address, mallory)).status).toBe(200)
      const before = await originCalls()
      expect((await send('/shared', address, alice)).status).toBe(429)
      expect(await originCalls()).toBe(before)
      expect((await send('/free', address, alice)).status).toBe(200)
      expect(await listed()).toEqual([])
    },
  )

  test('a flood of refusals from the cache is one violation, and writes nothing', async () => {
    const [{ send }, address] = [gateway({ violations: 3 }), newAddress()]
    const alice = await token('alice')
    for (const status of [200, 429])
      expect((await send('/mine', address, alice)).status).toBe(status)
    const before = redis.calls()
    for (let count = 0; count < 50; count++)
      expect((await send('/mine', address, alice)).status).toBe(429)
    expect(redis.calls()).toBe(before)
    expect(await listed()).toEqual([])
  })

  test('further requests of a banned address write nothing on routes that do not check bans [R18]', async () => {
    const [{ send }, address] = [gateway({ violations: 1, refuses: 'everything' }), newAddress()]
    expect((await send('/open?x=%ff', address)).status).toBe(400)
    expect(await listed()).toHaveLength(1)
    const before = redis.calls()
    for (let count = 0; count < 50; count++)
      expect((await send('/open?x=%ff', address)).status).toBe(400)
    expect(redis.calls()).toBe(before)
    expect((await send('/open?x=%ff', newAddress())).status).toBe(400)
    expect(await listed()).toHaveLength(2)
  })

  test('exempt and unknown addresses are never banned', async () => {
    const list = ['192.0.2.0/24', '203.0.113.7', '2001:db8:1::/48', '2001:db8:2:3::1']
    const { send } = gateway({ violations: 1 }, { exempt: list })
    const exempt = ['192.0.2.200', '203.0.113.7', '2001:db8:1:ffff::9', '2001:db8:2:3::2', 'x']
    // The platform sends this address for every Worker of another zone.
    exempt.push('2a06:98c0:3600::103')
    for (const address of exempt) {
      expect((await send('/free', address, 'a.b.c')).status).toBe(401)
      expect((await send('/free', address, await token())).status, address).toBe(200)
    }
    for (const address of ['192.0.3.1', '203.0.113.8', '2001:db8:2:4::1', '::ffff:203.0.113.9']) {
      expect((await send('/free', address, 'a.b.c')).status).toBe(401)
      expect((await send('/free', address, await token())).status, address).toBe(403)
    }
    expect((await listed()).length).toBe(4)
  })

  test('no caller is banned if the policy turns bans off', async () => {
    const [{ send }, address] = [gateway(false), newAddress()]
    for (let count = 0; count < 10; count++) await send('/free', address, 'a.b.c')
    expect((await send('/free', address, await token())).status).toBe(200)
    expect(await redis.direct.keys('pc:violations:*')).toEqual([])
  })

  test('without Redis no caller is banned, and no response changes [R01]', async () => {
    const [{ send }, address] = [gateway({ violations: 1 }), newAddress()]
    redis.setAnswering(false)
    expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    redis.setAnswering(true)
    expect((await send('/free', address, await token())).status).toBe(200)
    expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    expect((await send('/free', address, await token())).status).toBe(403)
  })

  test('an expired token is no violation, however often it is sent; any other failed check is', async () => {
    const { send } = gateway({ violations: 1 })
    const past = Math.floor(Date.now() / 1000) - 600
    const expired = await mint(key, { claims: { iat: past - 60, exp: past } })
    const address = newAddress()
    for (let count = 0; count < 10; count++)
      expect((await send('/free', address, expired)).status).toBe(401)
    expect((await send('/free', address, await token())).status).toBe(200)
    // Expired too by its claims, but the signature is not valid.
    const forged = await mint(await createKey('k1'), { claims: { iat: past - 60, exp: past } })
    expect((await send('/free', address, forged)).status).toBe(401)
    expect((await send('/free', address, await token())).status).toBe(403)
  })

  test('input refused by inspection bans the subject, or the address of an anonymous caller [S63]', async () => {
    const { send } = gateway({ violations: 3, refuses: 'everything' })
    const call = (body: string, sub: string, query = '') =>
      token(sub).then((credential) =>
        send(`/rpc${query}`, newAddress(), credential, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        }),
      )
    const good = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const unknown = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'drop' })
    const before = await originCalls()
    expect((await call(unknown, 'mallory')).status).toBe(403)
    expect((await call('{"a":1,"a":2}', 'mallory')).status).toBe(400)
    expect((await call(good, 'mallory', '?x=%00')).status).toBe(400)
    expect(await (await call(good, 'mallory')).json()).toMatchObject({ code: 'banned' })
    expect(await originCalls()).toBe(before)
    expect((await call(good, 'alice')).status).toBe(200)

    const address = newAddress()
    for (let count = 0; count < 3; count++)
      expect((await send('/open?x=%ff', address)).status).toBe(400)
    expect((await send('/public', address)).status).toBe(403)
    expect((await listed()).map(({ kind, value }) => [kind, value])).toEqual([
      ['address', address.replace('::1', '::/64')],
      ['subject', 'mallory'],
    ])
  })

  test('a schema violation is a mistake and no violation', async () => {
    const { send } = gateway({ violations: 1 })
    const alice = await token('alice')
    const call = (query: string, body: string) =>
      send(`/rpc${query}`, newAddress(), alice, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
    const good = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expect((await call('?size=1', good)).status).toBe(422)
    expect((await send('/mine', newAddress(), alice, { method: 'PUT' })).status).toBe(405)
    expect((await call('', good)).status).toBe(200)
    expect(await listed()).toEqual([])
  })

  test('refusals from an exempt address count neither for it nor for the subject', async () => {
    const { send } = gateway({ violations: 1 }, { exempt: ['198.51.100.0/24'] })
    const alice = await token('alice')
    expect((await send('/mine', '198.51.100.7', alice)).status).toBe(200)
    expect((await send('/mine', '198.51.100.7', alice)).status).toBe(429)
    expect((await send('/free', newAddress(), alice)).status).toBe(200)
    expect(await redis.direct.keys('pc:violations:*')).toEqual([])
  })

  test('loopback is exempt unless the policy says otherwise, for development', async () => {
    const [{ send }, { send: strict }] = [gateway(), gateway({}, { exempt: [] })]
    for (const address of ['127.0.0.1', '::1'])
      for (let count = 0; count < 30; count++)
        expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    for (let count = 0; count < 5; count++) await strict('/free', '127.0.0.1', 'a.b.c')
    expect((await strict('/free', '127.0.0.1', await token())).status).toBe(403)
  })

  test('a bad credential from a banned address is refused with the ban, without a call to Redis [S44]', async () => {
    const [{ send, events }, { send: other }, address] = [gateway(), gateway(), newAddress()]
    for (let count = 0; count < 5; count++)
      expect((await send('/free', address, 'a.b.c')).status).toBe(401)
    const response = await send('/free', address, 'a.b.c')
    expect(response.status).toBe(403)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(HOUR - 60)
    expect(await response.json()).toMatchObject({ code: 'banned' })
    expect(events.at(-1)).toMatchObject({ decision: 'deny', reason: 'banned:address', status: 403 })
    expect(response.headers.get('www-authenticate')).toBeNull()
    // Also after the throttle stops verifying.
    for (let count = 0; count < 20; count++) {
      const later = await send('/free', address, 'a.b.c')
      expect(later.status).toBe(403)
      expect(Number(later.headers.get('retry-after'))).toBeGreaterThan(HOUR - 60)
    }
    const before = redis.calls()
    for (let count = 0; count < 20; count++)
      expect((await send('/free', address, 'a.b.c')).status).toBe(403)
    expect(redis.calls()).toBe(before)
    // Another isolate has not cached the ban, and does so with the first request.
    expect((await other('/free', address, 'a.b.c')).status).toBe(401)
    expect((await other('/free', address, 'a.b.c')).status).toBe(403)
    expect(await listed()).toHaveLength(1)
  })

  test('a ban is reported for its whole time, and refreshed every ten seconds while it is reported [S44]', async () => {
    let nowMs = Date.now()
    const clock = () => nowMs
    const address = newAddress()
    const violations = createViolations({
      rule: { ...DEFAULT_BANS, violations: 1 },
      counter: createViolationCounter(rest(), clock),
      now: clock,
    })
    const behind: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void behind.push(promise)
    const reported = async () => {
      const seconds = violations.banSeconds(address, 'credential', waitUntil)
      await Promise.all(behind)
      return seconds
    }
    const by = { kind: 'address', value: address } as const
    violations.record({ of: 'credential', by, from: address }, waitUntil)
    await Promise.all(behind)
    expect(await reported()).toBe(HOUR)
    nowMs += 30_000
    const before = redis.calls()
    expect([await reported(), await reported(), await reported()]).toEqual(Array(3).fill(HOUR - 30))
    expect(redis.calls()).toBe(before + 1)
    const [ban] = await listed()
    expect(await bans().remove(ban?.id ?? '')).toBe(true)
    nowMs += 10_000
    // The ban is lifted, but a caller who keeps sending bad credentials causes the next one.
    expect(await reported()).toBe(HOUR - 40)
    expect(await reported()).toBe(2 * HOUR)
    nowMs += 2 * HOUR * 1000
    expect(await reported()).toBeUndefined()
  })

  test('a lifted ban is forgotten with the next bad credential', async () => {
    let nowMs = Date.now()
    const address = newAddress()
    const rule = { ...DEFAULT_BANS, violations: 2 }
    const counter = createViolationCounter(rest(), () => nowMs)
    const violations = createViolations({ rule, counter, now: () => nowMs })
    const behind: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void behind.push(promise)
    violations.learn(address, HOUR)
    expect(violations.banSeconds(address, 'credential', waitUntil)).toBe(HOUR)
    nowMs += 10_000
    expect(violations.banSeconds(address, 'credential', waitUntil)).toBe(HOUR - 10)
    await Promise.all(behind)
    expect(violations.banSeconds(address, 'credential', waitUntil)).toBeUndefined()
  })

  test('a ban costs accepted requests no extra call, and a lifted one ends at once [S44]', async () => {
    const [{ send }, address] = [gateway(), newAddress()]
    const alice = await token('alice')
    const callsOf = async () => {
      const before = redis.calls()
      const { status } = await send('/free', address, alice)
      return [status, redis.calls() - before]
    }
    await callsOf()
    expect(await callsOf()).toEqual([200, 1])
    const order = { kind: 'address', issuer: undefined, issuers: [], seconds: 60 } as const
    const value = address.replace('::1', '::/64')
    const { id } = await bans().create({ ...order, value, reason: undefined, createdBy: 'carol' })
    expect(await callsOf()).toEqual([403, 1])
    expect((await send('/free', address, 'a.b.c')).status).toBe(403)
    expect(await bans().remove(id)).toBe(true)
    expect(await callsOf()).toEqual([200, 1])
    expect((await send('/free', address, await token())).status).toBe(200)
  })

  test('of 10,000 forged tokens to a default gateway about 20 are verified [S44, R18]', async () => {
    const { send } = gateway()
    const [address, atOnce] = [newAddress(), 50]
    const [head = '', payload = '', signature = ''] = (await token()).split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const forged = () => {
      const text = JSON.stringify({ ...claims, jti: crypto.randomUUID() })
      return `${head}.${Buffer.from(text).toString('base64url')}.${signature}`
    }
    const verify = vi.spyOn(crypto.subtle, 'verify')
    onTestFinished(() => verify.mockRestore())
    const before = await originCalls()
    const calls = redis.calls()
    const statuses: number[] = []
    let [others, goodRequests] = [0, 0]
    const other = async () => {
      goodRequests += 1
      expect((await send('/free', newAddress(), await token())).status).toBe(200)
    }
    for (let sent = 0; sent < 10_000; sent += atOnce) {
      const batch = Array.from({ length: atOnce }, () => send('/free', address, forged()))
      if (sent % 1_000 === 0) {
        await other()
        others += 1
      }
      for (const response of await Promise.all(batch)) statuses.push(response.status)
    }
    const checks = verify.mock.calls.length - goodRequests
    expect(statuses).toHaveLength(10_000)
    // 429 after twenty failures, while the isolate has not cached the ban yet.
    expect(statuses.filter((status) => ![401, 403, 429].includes(status))).toEqual([])
    expect(checks).toBeGreaterThanOrEqual(DEFAULT_FAILURES.limit)
    expect(checks).toBeLessThan(DEFAULT_FAILURES.limit + MIN_CHECKS_AT_ONCE)
    expect(await originCalls()).toBe(before + others)
    // A failure and a violation for each token verified before the ban, and one call for each
    // other.
    expect(redis.calls() - calls).toBeLessThan(2 * checks + 2 * goodRequests)
    expect(await listed()).toHaveLength(1)
  })

  test('each ban is twice as long as the last, up to a day, and every key has a TTL [R18]', async () => {
    let nowMs = Date.now()
    const counter = createViolationCounter(rest(), () => nowMs)
    const rule = { ...DEFAULT_BANS, violations: 2 }
    const offender = { kind: 'subject', issuer: ISSUER, value: 'x:*'.repeat(200) } as const
    const earned: number[] = []
    for (let count = 0; count < 7; count++) {
      expect(await countOf(counter, offender, rule)).toBe(0)
      const seconds = await countOf(counter, offender, rule)
      earned.push(seconds)
      nowMs += seconds * 1000
    }
    const hours = [1, 2, 4, 8, 16, 24, 24]
    expect(earned).toEqual(hours.map((each) => each * HOUR))
    await countOf(counter, offender, rule)
    expect(await complaintsAbout(redis.direct)).toEqual([])
    for (const each of await redis.direct.keys('*')) expect(each.length).toBeLessThan(500)
    // Written with a clock that was days ahead, by which all but the last have ended.
    expect(await redis.direct.zcard('pc:bans')).toBe(1)
    expect(await redis.direct.zcard('pc:bans:ends')).toBe(1)
    // The test does not wait for days: it removes what Redis would have expired.
    await redis.direct.del(await redis.direct.keys('pc:automatic-bans:*'))
    expect(await countOf(counter, offender, rule)).toBe(HOUR)
  })

  test('refusals during a ban extend neither it nor the next ban [R18]', async () => {
    let nowMs = Date.now()
    const counter = createViolationCounter(rest(), () => nowMs)
    const offender = { kind: 'address', value: newAddress() } as const
    const rule = { ...DEFAULT_BANS, violations: 1 }
    expect(await countOf(counter, offender, rule)).toBe(HOUR)
    nowMs += 1_000_000
    for (let count = 0; count < 10; count++)
      expect(await countOf(counter, offender, rule)).toBe(HOUR - 1_000)
    expect(await listed()).toHaveLength(1)
    nowMs += (HOUR - 1_000) * 1000
    expect(await countOf(counter, offender, rule)).toBe(2 * HOUR)
  })

  test('violations of many addresses cost at most 100 calls a second [R18]', async () => {
    let nowMs = Date.now()
    const counter = createViolationCounter(rest(), () => nowMs)
    const violations = createViolations({ rule: DEFAULT_BANS, counter, now: () => nowMs })
    const behind: Promise<unknown>[] = []
    const waitUntil = (promise: Promise<unknown>) => void behind.push(promise)
    async function callsOf(count: number): Promise<number> {
      const before = redis.calls()
      for (let each = 0; each < count; each++) {
        const value = newAddress()
        violations.record(
          { of: 'credential', by: { kind: 'address', value }, from: value },
          waitUntil,
        )
      }
      await Promise.all(behind.splice(0))
      return redis.calls() - before
    }
    // The script is sent in full once. From then on each violation is one call.
    await callsOf(1)
    nowMs += 1_000
    expect(await callsOf(150)).toBe(100)
    nowMs += 1_000
    expect(await callsOf(1)).toBe(1)
  })

  test('50 concurrent violations in as many isolates are one ban [R18]', async () => {
    const offender = { kind: 'address', value: newAddress() } as const
    const counts = Array.from({ length: 50 }, () =>
      countOf(createViolationCounter(rest(), Date.now), offender, DEFAULT_BANS),
    )
    const seconds = await Promise.all(counts)
    expect(seconds.filter((each) => each === 0)).toHaveLength(DEFAULT_BANS.violations - 1)
    expect(await listed()).toMatchObject([{ kind: 'address', value: offender.value }])
  })
})
