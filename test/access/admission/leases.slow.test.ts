/** Leases over Redis: a frequent caller does not wait, and gets no more than the limit. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addressBanKey } from '../../../src/access/abuse/ban.ts'
import { type Admission, createAdmission } from '../../../src/access/admission/admission.ts'
import type { LimitRequest, LimitRule } from '../../../src/access/admission/limit.ts'
import { newLocalTally } from '../../../src/access/admission/local-admission.ts'
import {
  counterName,
  createLimitControls,
} from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../../src/errors.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { NEVER } from '../../harness/never.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, limitOf, nowSeconds, principal, takenOf } from './callers.ts'

const LEASE_MARGIN_MS = 100

const LEASE = { max: 1_000, ttlMs: 1_000 }
const BOUND_MS = 1_000

describe.each(['auto', 'embedded'] as const)('leases over Redis (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    await redis.direct.flushall()
    // Redis may not have the script yet, which costs an extra call once.
    await isolate().admit(principal(), [limitOf()])
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const leased = (rule: Partial<LimitRule> = {}) =>
    limitOf({ limit: 10_000, lease: LEASE, ...rule })
  const taken = async ({ key }: LimitRequest) =>
    takenOf(await redis.direct.get(counterName(DEFAULT_KEYS, key)))

  /** An isolate with a clock that the test sets. It runs background work at once. */
  function isolate({ redis: through = rest(), maxStalenessMs = BOUND_MS, startMs = 1e12 } = {}) {
    let nowMs = startMs
    const tally = newLocalTally()
    const store = createRedisAdmissionStore(through)
    const options = { store, now: () => nowMs, local: tally }
    const admission: Admission = createAdmission({ ...options, maxStalenessMs })
    async function admit(who: Principal | null, limits: readonly LimitRequest[], more = {}) {
      const verdict = await admission.admit({ principal: who, address: ADDRESS, limits, ...more })
      await verdict.renewal?.()
      return verdict
    }
    function pass(ms: number): void {
      nowMs += ms
    }
    return { tally, admit, pass }
  }

  /** Sends `count` requests, `ms` apart. Returns how many were refused. */
  async function admitRepeatedly(
    { admit, pass }: ReturnType<typeof isolate>,
    who: Principal | null,
    limits: readonly LimitRequest[],
    { count, ms }: { readonly count: number; readonly ms: number },
  ): Promise<number> {
    let refused = 0
    for (let n = 0; n < count; n++) {
      if ((await admit(who, limits)).denial !== undefined) refused += 1
      pass(ms)
    }
    return refused
  }

  test('a frequent caller costs one call in a hundred requests, and every request counts', async () => {
    const [one, who, limit] = [isolate(), principal(), leased({ limit: 1_000_000 })]
    await admitRepeatedly(one, who, [limit], { count: 1_000, ms: 1 })
    const before = redis.calls()
    expect(await admitRepeatedly(one, who, [limit], { count: 2_000, ms: 1 })).toBe(0)
    expect(redis.calls() - before).toBeLessThanOrEqual(20)
    expect(await taken(limit)).toBeGreaterThanOrEqual(3_000)
    expect(await taken(limit)).toBeLessThanOrEqual(3_000 + LEASE.max)
  })

  test('an occasional caller costs a call for each request and leases nothing', async () => {
    const [one, who, limit] = [isolate(), principal(), leased()]
    const before = redis.calls()
    await admitRepeatedly(one, who, [limit], { count: 20, ms: 400 })
    expect(redis.calls() - before).toBe(20)
    expect(await taken(limit)).toBe(20)
  })

  test('without a lease in the policy every request costs a call', async () => {
    const [one, who] = [isolate({ maxStalenessMs: 0 }), principal()]
    const before = redis.calls()
    await admitRepeatedly(one, who, [leased()], { count: 50, ms: 1 })
    expect(redis.calls() - before).toBe(50)
    expect(one.tally.admitted).toBe(0)
  })

  test('without limits, a current view of revocations is enough', async () => {
    const [one, who] = [isolate(), principal()]
    const before = redis.calls()
    await admitRepeatedly(one, who, [], { count: 1_000, ms: 1 })
    // The view is refreshed when half of the bound has passed.
    expect(redis.calls() - before).toBeLessThanOrEqual(4)
  })

  test('isolates with leases share the limit and admit not one more [R15]', async () => {
    const [who, limit] = [principal(), leased({ limit: 500 })]
    const isolates = [isolate(), isolate(), isolate(), isolate()]
    let admitted = 0
    for (let round = 0; round < 40; round++)
      for (const one of isolates)
        admitted += 10 - (await admitRepeatedly(one, who, [limit], { count: 10, ms: 1 }))
    expect(isolates.some(({ tally }) => tally.admitted > 0)).toBe(true)
    expect(admitted, NEVER).toBeLessThanOrEqual(500)
    expect(admitted).toBeGreaterThanOrEqual(500 - 4)
  })

  test('a request needs a held unit of every limit, or Redis decides on all of them', async () => {
    const [one, who] = [isolate(), principal()]
    const [wide, strict] = [leased(), limitOf({ limit: 10_000 })]
    await admitRepeatedly(one, who, [wide, strict], { count: 100, ms: 1 })
    expect(one.tally.admitted).toBe(0)
    expect(await taken(strict)).toBe(100)
    const both = [leased({ cost: 3 }), leased()] as const
    await admitRepeatedly(one, who, both, { count: 100, ms: 1 })
    expect(one.tally.admitted).toBeGreaterThan(50)
    expect(await taken(both[0])).toBeGreaterThanOrEqual(300)
    expect((await taken(both[0])) % 3).toBe(0)
  })

  test('unspent units are returned, and only once', async () => {
    const [one, who, limit] = [isolate(), principal(), leased()]
    await admitRepeatedly(one, who, [limit], { count: 100, ms: 1 })
    expect(await taken(limit)).toBeGreaterThan(101)
    one.pass(3 * LEASE.ttlMs)
    await one.admit(who, [limit])
    expect(await taken(limit)).toBe(101)
    one.pass(3 * LEASE.ttlMs)
    await one.admit(who, [limit])
    expect(await taken(limit)).toBe(102)
    expect(one.tally.returned).toBeGreaterThan(0)
  })

  test('a renewal is never repeated, and a call for a request may be', async () => {
    const sent: (boolean | undefined)[] = []
    const through: RedisConnection = {
      keys: DEFAULT_KEYS,
      send(commands, options) {
        sent.push(options?.once)
        return rest().send(commands, options)
      },
    }
    const [one, who, limit] = [isolate({ redis: through }), principal(), leased()]
    await admitRepeatedly(one, who, [limit], { count: 3, ms: 1 })
    expect(sent).toEqual([undefined, undefined, undefined])
    await admitRepeatedly(one, who, [limit], { count: 500, ms: 1 })
    const strict = sent.filter((once) => once !== true).length
    expect(one.tally.refreshed).toBeGreaterThan(0)
    expect(sent.length - strict).toBe(one.tally.refreshed)
    expect(strict + one.tally.admitted).toBe(503)
  })

  test('a revoked or banned caller is refused when the bound has passed, however frequent [S30, S33]', async () => {
    const orders: [string, (who: Principal) => Promise<unknown>][] = [
      [
        'token_revoked',
        ({ tokenIdHash = '', expiresAtSeconds }) =>
          createRevocations(rest(), Date.now).revokeToken({
            tokenIdHash,
            untilSeconds: expiresAtSeconds,
          }),
      ],
      [
        'token_revoked',
        ({ issuer, subject }) =>
          createRevocations(rest(), Date.now).revokeBefore({
            kind: 'subject',
            issuer,
            value: subject,
            atSeconds: nowSeconds(),
            ttlSeconds: 60,
          }),
      ],
    ]
    for (const [code, order] of orders) {
      const [one, who, limit] = [isolate(), principal(), leased()]
      await admitRepeatedly(one, who, [limit], { count: 100, ms: 1 })
      expect(one.tally.admitted).toBeGreaterThan(50)
      await order(who)
      let lastAdmittedMs = 0
      for (let ms = 0; ms < 2 * BOUND_MS; ms += 10) {
        const { denial } = await one.admit(who, [limit])
        if (denial === undefined) lastAdmittedMs = ms
        else expect(denial.code).toBe(code)
        one.pass(10)
      }
      expect(lastAdmittedMs).toBeLessThan(BOUND_MS)
      const other = principal()
      expect(await admitRepeatedly(one, other, [limit], { count: 20, ms: 1 })).toBe(0)
    }
  })

  test('without Redis, known callers are admitted for the bound, and then none are', async () => {
    let isAway = false
    const through: RedisConnection = {
      keys: DEFAULT_KEYS,
      send: (...call) =>
        isAway ? Promise.reject(new Unavailable('redis', 'unreachable')) : rest().send(...call),
    }
    const [one, who, limit] = [isolate({ redis: through }), principal(), leased()]
    await admitRepeatedly(one, who, [limit], { count: 300, ms: 1 })
    isAway = true
    let passedMs = 0
    const go = async () => {
      for (; passedMs < 3 * BOUND_MS; passedMs += 1) {
        await one.admit(who, [limit])
        one.pass(1)
      }
    }
    await expect(go()).rejects.toBeInstanceOf(Unavailable)
    expect(passedMs).toBeGreaterThan(100)
    expect(passedMs).toBeLessThanOrEqual(BOUND_MS)
    expect(one.tally.failed).toBeGreaterThan(0)
    await expect(one.admit(principal(), [])).rejects.toBeInstanceOf(Unavailable)
  })

  test('a proof of possession is consumed in Redis, however much is held', async () => {
    const [one, who, limit] = [isolate(), principal(), leased()]
    await admitRepeatedly(one, who, [limit], { count: 100, ms: 1 })
    const proof = { replayId: 'one', replayTtlSeconds: 60 }
    expect((await one.admit(who, [limit], { proof })).denial).toBeUndefined()
    expect((await one.admit(who, [limit], { proof })).denial?.code).toBe('invalid_dpop_proof')
    const other = isolate()
    expect((await other.admit(who, [limit], { proof })).denial?.code).toBe('invalid_dpop_proof')
  })

  test('a limit changed by an operator takes effect with the next renewal', async () => {
    const [one, who, limit] = [isolate(), principal(), leased()]
    await admitRepeatedly(one, who, [limit], { count: 100, ms: 1 })
    await createLimitControls(rest()).override({ key: limit.key, requests: 5 })
    const late = []
    for (let ms = 0; ms < 2 * LEASE.ttlMs; ms += 10) {
      if ((await one.admit(who, [limit])).denial === undefined) late.push(ms)
      one.pass(10)
    }
    expect(Math.max(0, ...late)).toBeLessThanOrEqual(LEASE.ttlMs / 2 + 10)
  })

  test('a banned address is refused after the bound, although it holds units', async () => {
    const [one, limit] = [isolate(), leased({ onUnavailable: 'allow' })]
    await admitRepeatedly(one, null, [limit], { count: 100, ms: 1 })
    expect(one.tally.admitted).toBeGreaterThan(50)
    await redis.direct.del('pc:revocation-feed')
    await redis.direct.set(await addressBanKey(DEFAULT_KEYS, ADDRESS), String(nowSeconds() + 60))
    one.pass(BOUND_MS)
    expect((await one.admit(null, [limit])).denial?.code).toBe('banned')
  })

  test('a window with leased units expires one window after the end of the lease [S34]', async () => {
    const [one, who, limit] = [isolate(), principal(), leased({ windowSeconds: 60 })]
    await admitRepeatedly(one, who, [limit], { count: 100, ms: 1 })
    const leftMs = await redis.direct.pttl(counterName(DEFAULT_KEYS, limit.key))
    expect(leftMs).toBeGreaterThan(60_000)
    expect(leftMs).toBeLessThanOrEqual(60_000 + LEASE.ttlMs + LEASE_MARGIN_MS + 2)
  })
})
