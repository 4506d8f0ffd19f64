/** Metered limits in Redis: one call, all or nothing, and exact under concurrency. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addressBanKey } from '../../../src/access/abuse/ban.ts'
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import { planRecordOf } from '../../../src/access/admission/plan-record.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { AdmissionFacts, AdmissionQuery } from '../../../src/access/admission/store.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { Unavailable } from '../../../src/errors.ts'
import { plans, quotas } from '../../../src/features/plans/index.ts'
import type { LimitGroup } from '../../../src/policy/definition.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import {
  ADDRESS,
  GATEWAY,
  limitOf,
  principal,
  recordOf,
  stored,
} from '../../access/admission/callers.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ALL_REDIS_PROTOCOLS } from '../../harness/redis-protocols.ts'
import { requestsOf } from './limits.ts'

const PLANS = plans({
  plans: {
    free: { rate: '5/min', perMonth: 7 },
    pro: { rate: '50/min', perDay: 40, perMonth: 60, concurrency: 3 },
  },
  default: 'free',
  planBy: ['key', 'client', 'tenant', 'claim'],
})

describe.each(ALL_REDIS_PROTOCOLS)('metered limits ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let calls = 0
  let counting: RedisConnection
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    const connection = connect(redis)
    counting = {
      ...connection,
      send(commands, options) {
        calls += 1
        return connection.send(commands, options)
      },
    }
    // Redis caches the scripts.
    const warm = await requestsOf(PLANS, 'warm', principal())
    await consult(warm)
    await resolve(PLANS, await reference())
  })
  beforeEach(() => {
    calls = 0
  })
  afterAll(() => redis.close())

  function consult(
    limits: readonly LimitRequest[],
    query: Partial<AdmissionQuery> = {},
  ): Promise<AdmissionFacts> {
    const nothing = { revocation: NOTHING_REVOCABLE, bans: [], nowMs: Date.now() }
    return createRedisAdmissionStore(counting).consult({ ...nothing, limits, ...query })
  }
  const setPlan = async (
    by: 'key' | 'client' | 'tenant',
    issuer: string,
    value: string,
    plan: string,
  ) => redis.direct.set(DEFAULT_KEYS.plan + (await planRecordOf(by, issuer, value)), plan)
  const shown = (facts: Pick<AdmissionFacts, 'limits'>) =>
    facts.limits.map((state) =>
      state === undefined || state instanceof Unavailable
        ? state
        : [state.rule.name, state.limit, state.remaining, state.admitted],
    )
  const owner = () => crypto.randomUUID()

  async function reference(claims: Parameters<typeof recordOf>[0] = {}) {
    const record = recordOf({
      kind: 'api_key',
      key: crypto.randomUUID(),
      issuer: GATEWAY,
      ...claims,
    })
    return { record, reference: await stored(createReferenceStore(counting), record) }
  }
  async function resolve(
    group: LimitGroup,
    { reference: of }: Awaited<ReturnType<typeof reference>>,
  ) {
    const facts = await createRedisAdmissionStore(counting).resolve({
      reference: of,
      audience: GATEWAY,
      thumbprint: undefined,
      addressBan: await addressBanKey(DEFAULT_KEYS, ADDRESS),
      nowMs: Date.now(),
      proof: undefined,
      limits: group.limits('plan', {}).map((rule) => ({
        rule,
        window: { by: 'key' },
        slot: rule.meter?.newSlot(),
      })),
    })
    return {
      keys: facts.limits.map((one) => one?.key),
      limits: facts.limits.map((one) => one?.state),
    }
  }

  test('the plan of the caller decides, in one call, from the next request on', async () => {
    const caller = principal({ client: owner() })
    const window = owner()
    expect(shown(await consult(await requestsOf(PLANS, window, caller)))).toEqual([
      ['plan', 5, 4, true],
      ['plan-day', 0, 0, true],
      ['plan-month', 7, 6, true],
      ['plan-concurrency', 0, 0, true],
    ])
    await setPlan('client', caller.issuer, caller.client ?? '', 'pro')
    calls = 0
    expect(shown(await consult(await requestsOf(PLANS, window, caller)))).toEqual([
      ['plan', 50, 48, true],
      ['plan-day', 40, 39, true],
      ['plan-month', 60, 58, true],
      ['plan-concurrency', 3, 2, true],
    ])
    expect(calls).toBe(1)
  })

  test('the first plan in the order of planBy applies; an unknown one is skipped', async () => {
    const caller = principal({ client: owner(), tenant: owner(), plan: 'pro' })
    const limitOfPlan = async () =>
      (await consult(await requestsOf(PLANS, owner(), caller))).limits[0]
    expect(await limitOfPlan()).toMatchObject({ limit: 50 })
    await setPlan('tenant', caller.issuer, caller.tenant ?? '', 'free')
    expect(await limitOfPlan()).toMatchObject({ limit: 5 })
    await setPlan('client', caller.issuer, caller.client ?? '', 'retired')
    expect(await limitOfPlan()).toMatchObject({ limit: 5 })
    await setPlan('client', caller.issuer, caller.client ?? '', 'pro')
    expect(await limitOfPlan()).toMatchObject({ limit: 50 })
  })

  test('an API key that no isolate has cached gets its plan in the call that resolves it', async () => {
    const key = await reference()
    const id = key.record.key ?? ''
    expect(shown(await resolve(PLANS, key))[0]).toEqual(['plan', 5, 4, true])
    await setPlan('key', GATEWAY, id, 'pro')
    calls = 0
    const { keys, limits } = await resolve(PLANS, key)
    expect(calls).toBe(1)
    expect(keys[2]).toBe(`plan-month:key:${encodeURIComponent(GATEWAY)}:${id}`)
    expect(shown({ limits })).toEqual([
      ['plan', 50, 48, true],
      ['plan-day', 40, 39, true],
      ['plan-month', 60, 58, true],
      ['plan-concurrency', 3, 2, true],
    ])
    expect(limits[3]).toHaveProperty('slot')
  })

  test('a request that another limit or a revocation refuses takes nothing', async () => {
    const window = owner()
    const full = limitOf({ limit: 1 })
    await consult([full])
    const caller = principal({ client: owner() })
    await setPlan('client', caller.issuer, caller.client ?? '', 'pro')
    await consult([full, ...(await requestsOf(PLANS, window, caller))])
    const token = `${DEFAULT_KEYS.revokedToken}${owner()}`
    await redis.direct.set(token, '1')
    const revocation = { ...NOTHING_REVOCABLE, token }
    const refused = await consult(await requestsOf(PLANS, window, caller), { revocation })
    expect(refused.tokenRevoked).toBe(true)
    expect(shown(await consult(await requestsOf(PLANS, window, caller)))).toEqual([
      ['plan', 50, 49, true],
      ['plan-day', 40, 39, true],
      ['plan-month', 60, 59, true],
      ['plan-concurrency', 3, 2, true],
    ])
  })

  test('a quota is exact under concurrency, and a refusal names its end', async () => {
    const window = owner()
    const quota = quotas({ perDay: 10 })
    const all = await Promise.all(
      Array.from({ length: 60 }, async () => consult(await requestsOf(quota, window))),
    )
    const states = all.map(({ limits: [state] }) => state as { admitted: boolean; resetMs: number })
    expect(states.filter(({ admitted }) => admitted).length).toBe(10)
    const midnight = new Date().setUTCHours(24, 0, 0, 0)
    for (const { resetMs } of states) expect(Math.abs(resetMs - midnight)).toBeLessThan(5_000)
  })

  test('never more slots than the limit are taken; released and abandoned ones are free again', async () => {
    const window = owner()
    const inFlight = quotas({ concurrency: 3 })
    const take = async () => (await consult(await requestsOf(inFlight, window))).limits[0]
    const all = await Promise.all(Array.from({ length: 20 }, take))
    const slots = all.flatMap((state) => (state && 'slot' in state ? (state.slot ?? []) : []))
    expect(slots.length).toBe(3)
    expect(await take()).toMatchObject({ admitted: false, remaining: 0 })
    await slots[0]?.release()
    await slots[1]?.renew()
    expect(await take()).toMatchObject({ admitted: true, remaining: 0 })
    // The gateway that held the slots has ended: nothing renews them.
    const key = `${DEFAULT_KEYS.limit}plan-concurrency:${window}`
    expect(await redis.direct.pttl(key)).toBeGreaterThan(0)
    for (const member of await redis.direct.zrange(key, 0, -1))
      await redis.direct.zadd(key, 1, member)
    expect(await take()).toMatchObject({ admitted: true, remaining: 2 })
  })

  test.each([
    ['plan-month', 'not a quota'],
    ['plan-concurrency', 'not a sorted set'],
  ])(
    'a %s that cannot be read refuses the request, and other limits are not charged',
    async (name, value) => {
      const window = owner()
      const caller = principal({ plan: 'pro' })
      await redis.direct.set(`${DEFAULT_KEYS.limit}${name}:${window}`, value)
      const { limits } = await consult(await requestsOf(PLANS, window, caller))
      expect(limits.filter((state) => state instanceof Unavailable).length).toBe(1)
      expect(shown({ limits })[0]).toEqual(['plan', 50, 50, true])
    },
  )

  test.skipIf(prefer === 'embedded')(
    'the script uses only declared keys, with and without a proof and a stored plan',
    async () => {
      const caller = principal({ key: owner(), client: owner(), tenant: owner(), plan: 'free' })
      const monitor = await redis.direct.monitor()
      const touched: string[] = []
      const declared = new Set<string>()
      monitor.on('monitor', (_, [name = '', ...args]: readonly string[], source: string) => {
        if (/^evalsha$/i.test(name))
          for (const key of args.slice(2, 2 + Number(args[1]))) declared.add(key)
        else if (source === 'lua' && !/^time$/i.test(name))
          touched.push(...(/^exists$/i.test(name) ? args : args.slice(0, 1)))
      })
      try {
        const proof = { replayId: owner(), replayTtlSeconds: 60 }
        for (const used of [undefined, proof]) {
          const facts = await consult(await requestsOf(PLANS, owner(), caller), { proof: used })
          expect(shown(facts)[0]).toEqual(['plan', 5, 4, true])
          expect(facts.proofUsed).toBe(false)
        }
        await setPlan('tenant', caller.issuer, caller.tenant ?? '', 'pro')
        const again = await consult(await requestsOf(PLANS, owner(), caller), { proof })
        expect(again.proofUsed).toBe(true)
        const facts = await consult(await requestsOf(PLANS, owner(), caller))
        expect(shown(facts)[0]).toEqual(['plan', 50, 49, true])
        await expect.poll(() => touched.some((key) => key.includes(':tenant:'))).toBe(true)
        expect(touched.filter((key) => !declared.has(key))).toEqual([])
      } finally {
        monitor.disconnect()
      }
    },
  )
})
