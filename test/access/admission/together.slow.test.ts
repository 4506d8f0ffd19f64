/**
 * All limits of a request are charged together, or none is. A refused request is charged nothing.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addressBanKey } from '../../../src/access/abuse/ban.ts'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import type { LimitRequest, LimitRule } from '../../../src/access/admission/limit.ts'
import {
  counterName,
  createLimitControls,
  overrideKey,
} from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { Unavailable } from '../../../src/errors.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import { admit as admitStage } from '../../../src/middleware/admit.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import {
  ADDRESS,
  GATEWAY,
  limitOf,
  nowSeconds,
  principal,
  recordOf,
  stored,
  takenOf,
} from './callers.ts'

/** Returns the text of a window with these units, and 9 more that expired in 1970. */
const windowOf = (units: number) => {
  const total = units < 0 ? `-${String(-units).padStart(9, '0')}` : String(units).padStart(10, '0')
  return `${total}${'1'.padStart(16, '0')}${'9'.padStart(10, '0')}`
}

describe.each(['auto', 'embedded'] as const)('limits of one request (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    await redis.direct.flushall()
    await admit(limitOf())
  })

  const rest = () => createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const isolate = () => createAdmission({ store: createRedisAdmissionStore(rest()), now: Date.now })
  const request = (limits: readonly LimitRequest[], who: Principal | null = null) => ({
    principal: who,
    address: ADDRESS,
    limits,
  })
  /** Uses an isolate with an empty memory each time. */
  const admit = (...limits: LimitRequest[]) => isolate().admit(request(limits))
  const taken = async ({ key }: LimitRequest) =>
    takenOf(await redis.direct.get(counterName(DEFAULT_KEYS, key)))
  const spend = async (limit: LimitRequest) => {
    while ((await admit(limit)).denial === undefined);
  }

  test('if all have room, one call charges each of them', async () => {
    const limits = [limitOf({ limit: 9 }), limitOf({ cost: 2 }), limitOf({ mode: 'observe' })]
    const before = redis.calls()
    const verdict = await admit(...limits)
    expect(redis.calls() - before).toBe(1)
    expect(verdict.limits.map(({ remaining }) => remaining)).toEqual([8, 1, 2])
    expect(await Promise.all(limits.map(taken))).toEqual([1, 2, 1])
  })

  test('if one is exhausted, none is charged, and the state of all is reported', async () => {
    const [wide, narrow] = [limitOf({ limit: 9 }), limitOf({ limit: 1 })]
    await spend(narrow)
    const verdict = await admit(wide, narrow)
    expect(verdict.denial).toMatchObject({ code: 'rate_limited' })
    expect(verdict.limits.map(({ remaining }) => remaining)).toEqual([9, 0])
    expect(verdict.limits.map(({ admitted }) => admitted)).toEqual([true, false])
    expect(await taken(wide)).toBeNaN()
    expect(await taken(narrow)).toBe(1)
  })

  test('if one is only observed, it refuses nothing and the others are charged', async () => {
    const [wide, watched] = [limitOf({ limit: 9 }), limitOf({ limit: 1, mode: 'observe' })]
    await admit(watched)
    const verdict = await admit(wide, watched)
    expect(verdict.denial).toBeUndefined()
    expect(verdict.observed).toMatchObject([{ code: 'rate_limited' }])
    expect([await taken(wide), await taken(watched)]).toEqual([1, 1])
  })

  const broken: [string, (limit: LimitRequest) => Promise<unknown>][] = [
    [
      'window of the wrong type',
      ({ key }) => redis.direct.hset(counterName(DEFAULT_KEYS, key), 'a', 'b'),
    ],
    [
      'window that is not a window',
      ({ key }) => redis.direct.set(counterName(DEFAULT_KEYS, key), 'soon'),
    ],
    ['window that is empty', ({ key }) => redis.direct.set(counterName(DEFAULT_KEYS, key), '')],
    [
      'truncated window',
      ({ key }) => redis.direct.set(counterName(DEFAULT_KEYS, key), '0'.repeat(35)),
    ],
    [
      'window with negative units',
      ({ key }) => redis.direct.set(counterName(DEFAULT_KEYS, key), windowOf(-9)),
    ],
    [
      'window with fewer units than its shares',
      ({ key }) => redis.direct.set(counterName(DEFAULT_KEYS, key), windowOf(0)),
    ],
    [
      'override of the wrong type',
      ({ key }) => redis.direct.hset(overrideKey(DEFAULT_KEYS, key), 'a', 'b'),
    ],
    [
      'override that is not a number',
      ({ key }) => redis.direct.set(overrideKey(DEFAULT_KEYS, key), '-1e9'),
    ],
  ]
  test.each(broken)('a %s charges nothing to the others, or is skipped [R12]', async (_, ruin) => {
    for (const rule of [
      { onUnavailable: 'deny' },
      { onUnavailable: 'allow' },
      { mode: 'observe' },
    ] as Partial<LimitRule>[]) {
      const [sound, ruined] = [limitOf(), limitOf(rule)]
      await ruin(ruined)
      if (rule.onUnavailable === 'deny') {
        await expect(admit(sound, ruined)).rejects.toBeInstanceOf(Unavailable)
        expect(await taken(sound)).toBeNaN()
      } else {
        expect(await admit(sound, ruined)).toMatchObject({ denial: undefined, uncounted: ['test'] })
        expect(await taken(sound)).toBe(1)
      }
    }
  })

  test('a revoked, banned or replayed request is charged nothing [S30, S33]', async () => {
    const limit = limitOf()
    const [revoked, cut, good] = [principal(), principal(), principal()]
    await createRevocations(rest(), Date.now).revokeToken({
      tokenIdHash: revoked.tokenIdHash ?? '',
      untilSeconds: nowSeconds() + 60,
    })
    await createRevocations(rest(), Date.now).revokeBefore({
      kind: 'subject',
      issuer: cut.issuer,
      value: cut.subject,
      atSeconds: nowSeconds(),
      ttlSeconds: 60,
    })
    const proof = { replayId: 'used', replayTtlSeconds: 60 }
    await isolate().admit({ ...request([], good), proof })
    for (const [who, how] of [
      [revoked, 'token_revoked'],
      [cut, 'token_revoked'],
      [good, 'invalid_dpop_proof'],
    ] as const) {
      const used = how === 'invalid_dpop_proof' ? { proof } : {}
      const { denial } = await isolate().admit({ ...request([limit], who), ...used })
      expect(denial?.code).toBe(how)
    }
    await redis.direct.set(await addressBanKey(DEFAULT_KEYS, ADDRESS), String(nowSeconds() + 60))
    expect((await admit(limit)).denial?.code).toBe('banned')
    expect(await taken(limit)).toBeNaN()
  })

  test('the proof of a revoked or banned request is not consumed; over a limit it is', async () => {
    const proofOf = (id: string) => ({ replayId: id, replayTtlSeconds: 60 })
    const narrow = limitOf({ limit: 1 })
    await spend(narrow)
    await isolate().admit({ ...request([narrow], principal()), proof: proofOf('spent') })
    await redis.direct.set(await addressBanKey(DEFAULT_KEYS, ADDRESS), String(nowSeconds() + 60))
    await isolate().admit({ ...request([], principal()), proof: proofOf('banned') })
    expect(await redis.direct.keys('pc:dpop:*')).toEqual(['pc:dpop:spent'])
  })

  test('after SCRIPT FLUSH a proof and its limits are charged once [R12]', async () => {
    const limits = [limitOf(), limitOf({ engine: upstash() })]
    const proof = { replayId: 'flushed', replayTtlSeconds: 60 }
    const who = principal()
    const codes = []
    for (let count = 0; count < 2; count++) {
      await redis.direct.script('FLUSH')
      const { denial } = await isolate().admit({ ...request(limits, who), proof })
      codes.push(denial?.code)
    }
    expect(codes).toEqual([undefined, 'invalid_dpop_proof'])
    expect(await taken(limits[0] as LimitRequest)).toBe(1)
  })

  test('a cost of three is charged whole or not at all, with the time when it fits again', async () => {
    const limit = limitOf({ limit: 7, cost: 3, windowSeconds: 600 })
    const left = []
    for (let count = 0; count < 2; count++) left.push((await admit(limit)).limits[0]?.remaining)
    expect(left).toEqual([4, 1])
    const { denial, limits } = await admit(limit)
    expect(denial).toMatchObject({ code: 'rate_limited' })
    expect(limits[0]?.remaining).toBe(1)
    expect(await taken(limit)).toBe(6)
  })

  test('an override below the cost, or below what was used, refuses everything', async () => {
    const limit = limitOf({ limit: 7, cost: 3 })
    await admit(limit)
    const controls = createLimitControls(rest())
    for (const requests of [2, 5]) {
      await controls.override({ key: limit.key, requests })
      const { denial, limits } = await admit(limit)
      expect(denial).toMatchObject({ code: 'rate_limited' })
      expect(limits[0]).toMatchObject({ limit: requests, remaining: Math.max(0, requests - 3) })
    }
    await controls.reset({ key: limit.key, windowSeconds: limit.rule.windowSeconds })
    expect((await admit(limit)).limits[0]).toMatchObject({ limit: 5, remaining: 2 })
  })

  test('a limit of the upstash engine is part of the same call, and counts separately', async () => {
    const [exact, other] = [limitOf({ limit: 9 }), limitOf({ limit: 1, engine: upstash() })]
    // Redis may not have the other script yet, which costs an extra call once.
    await admit(limitOf({ engine: upstash() }))
    const before = redis.calls()
    const verdict = await admit(other, exact)
    expect(redis.calls() - before).toBe(1)
    expect(verdict.limits.map(({ remaining }) => remaining)).toEqual([0, 8])
    expect((await admit(other, exact)).denial).toMatchObject({ code: 'rate_limited' })
    expect(await taken(exact)).toBe(2)
  })

  test('for an uncached reference, limits are charged together too', async () => {
    const [wide, narrow, other] = [
      limitOf({ limit: 9 }),
      limitOf({ limit: 1 }),
      limitOf({ engine: upstash() }),
    ]
    const references = createReferences({ audience: GATEWAY })
    const store = createRedisAdmissionStore(rest())
    const verdicts = []
    const before = redis.calls()
    for (let count = 0; count < 2; count++) {
      const reference = await stored(createReferenceStore(rest()), recordOf())
      const limits = [wide, narrow, other].map(({ rule, key }) => ({
        rule,
        window: { key },
        keyOf: () => ({ key }),
      }))
      // An isolate with an empty memory.
      const admission = createAdmission({ store, references, now: Date.now })
      verdicts.push(
        await admission.admitReference({ reference, proof: undefined, address: ADDRESS, limits }),
      )
    }
    // One call each to store the record and to admit it, plus one to load the script.
    expect(redis.calls() - before).toBeLessThanOrEqual(5)
    expect(verdicts.map(({ denial }) => denial?.code)).toEqual([undefined, 'rate_limited'])
    expect(verdicts[1]?.limits.map(({ remaining }) => remaining)).toEqual([8, 0, 1])
    expect(await taken(wide)).toBe(1)
  })
})

test('a limit that is listed twice is refused when the app is built', () => {
  const admission = createAdmission({
    store: createRedisAdmissionStore({
      keys: DEFAULT_KEYS,
      send: () => Promise.reject(new Error('not called')),
    }),
    now: Date.now,
  })
  const limit = { name: 'dear', limit: 5, windowSeconds: 60, by: 'address' } as const
  const limits = [1, 5].map((cost) => ({ ...limit, onUnavailable: 'deny', cost }) as const)
  expect(() => admitStage({ admission, limits })).toThrow(TypeError)
})

test('a limit that nothing can count is refused when the app is built', () => {
  const admission = createAdmission({
    store: createRedisAdmissionStore({
      keys: DEFAULT_KEYS,
      send: () => Promise.reject(new Error('not called')),
    }),
    now: Date.now,
  })
  const limit = { name: 'dear', limit: 5, windowSeconds: 60, by: 'address' } as const
  for (const wrong of [{ cost: 6 }, { cost: 0 }, { cost: 2, engine: upstash() }] as const)
    expect(() =>
      admitStage({ admission, limits: [{ ...limit, onUnavailable: 'deny', ...wrong }] }),
    ).toThrow(RangeError)
})
