/** The script grants, takes back and writes what the specification of leases requires. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RateLimit } from '../../../../src/access/admission/limit.ts'
import { counterName } from '../../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../../src/access/admission/redis/store.ts'
import type { AdmissionQuery } from '../../../../src/access/admission/store.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { usualOrLong } from '../../../harness/long.ts'
import { readableScript } from '../../../harness/lua.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import { limitOf } from '../callers.ts'
import { createModel, type ModelGrant } from '../exact-model.ts'
import { SEED } from '../schedules.ts'

const RUNS = { seed: SEED, numRuns: usualOrLong(12, 25) }
const WINDOW_SECONDS = 60
const WINDOW_MICROS = WINDOW_SECONDS * 1e6

/** The script with a test clock in its last two arguments. */
const CLOCKED_SCRIPT = (await readableScript('access/admission/redis/admit.lua')).replace(
  "call('TIME')",
  '{ ARGV[#ARGV - 1], ARGV[#ARGV] }',
)
const text = (number: number, digits: number) => String(number).padStart(digits, '0')

const steps = fc.array(
  fc.record({
    gap: fc.oneof(
      fc.integer({ min: 0, max: 1e6 }),
      fc.integer({ min: 0, max: WINDOW_MICROS / 4 }),
      fc.integer({ min: -WINDOW_MICROS / 4, max: 2 * WINDOW_MICROS }),
    ),
    isRenewal: fc.boolean(),
    units: fc.nat(60),
    holdMs: fc.integer({ min: 100, max: 15_000 }),
    /** An earlier grant that is returned, and the number of returned units. */
    back: fc.option(fc.record({ grant: fc.nat(), units: fc.nat(80) })),
    /** A request without a lease. */
    isPlain: fc.boolean(),
  }),
  { minLength: 20, maxLength: 60 },
)

const NO_STATE: Pick<AdmissionQuery, 'revocation' | 'bans'> = {
  revocation: { cacheKey: '', token: undefined, revokedBefore: [], issuedAtSeconds: 0 },
  bans: [],
}

describe.each(REDIS_PROTOCOLS)('the lease script ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())

  /** Creates a store over a Redis with the clock `micros()`. */
  function clocked(micros: () => number) {
    const rest = connect(redis)
    const changed: RedisConnection = {
      keys: DEFAULT_KEYS,
      send: ([command = []]) => {
        const clock = [Math.floor(micros() / 1e6), micros() % 1e6]
        return rest.send([['EVAL', CLOCKED_SCRIPT, ...command.slice(2), ...clock]])
      },
    }
    return createRedisAdmissionStore(changed)
  }

  test('agrees with the model over random schedules of requests, leases and returns [R15, R16]', async () => {
    const seen = { granted: 0, returned: 0, emptied: 0 }
    const limits = fc.integer({ min: 1, max: 200 })
    const costs = fc.integer({ min: 1, max: 4 })
    const property = fc.asyncProperty(limits, costs, steps, async (limit, rawCost, list) => {
      const cost = Math.min(rawCost, limit)
      const model = createModel({ limit, windowMicros: WINDOW_MICROS })
      let micros = 1_795_000_000_000_000
      const store = clocked(() => micros)
      const limitInUse = limitOf({ limit, windowSeconds: WINDOW_SECONDS, cost })
      const grants: ModelGrant[] = []
      for (const { gap, isRenewal, units, holdMs, back, isPlain } of list) {
        micros += gap
        const from = back && grants[back.grant % Math.max(1, grants.length)]
        const leaseRequest = {
          units,
          step: cost,
          holdMs,
          returned: from ? (back?.units ?? 0) : 0,
          returnedEndMicros: from?.endMicros ?? 0,
        }
        const ahead = isPlain ? undefined : { ...leaseRequest, holdMicros: holdMs * 1000 }
        const expected = model.admit(micros, isRenewal ? 0 : cost, ahead)
        const facts = await store.consult({
          ...NO_STATE,
          limits: [isPlain ? limitInUse : { ...limitInUse, leaseRequest }],
          isRenewal,
          nowMs: Date.now(),
        })
        const { admitted, left, grant } = expected
        const state = facts.limits[0] as RateLimit
        expect(state).toMatchObject({ limit, remaining: left, admitted })
        if (!isPlain) expect(state.grant).toEqual(grant)
        if (grant.units > 0) grants.push(grant)
        const shares = model.shares()
        const used = shares.reduce((sum, share) => sum + share.units, 0)
        seen.granted += grant.units
        seen.returned += ahead?.returned ?? 0
        const window = await redis.direct.get(counterName(DEFAULT_KEYS, limitInUse.key))
        // An unchanged window keeps its stored value.
        if (window === null) seen.emptied += used === 0 ? 1 : 0
        if (admitted && (!isRenewal || grant.units > 0)) {
          const written = shares.map((each) => text(each.atMicros, 16) + text(each.units, 10))
          expect(window).toBe(text(used, 10) + written.join(''))
        }
      }
    })
    await fc.assert(property, RUNS)
    expect(seen.granted).toBeGreaterThan(100)
    expect(seen.returned).toBeGreaterThan(100)
    expect(seen.emptied).toBeGreaterThan(0)
  })

  test('deletes a window when all its units are returned', async () => {
    const store = clocked(() => 1_795_000_000_000_000)
    const limitInUse = limitOf({ limit: 200 })
    const leaseRequest = { units: 20, step: 1, holdMs: 1_000, returned: 0, returnedEndMicros: 0 }
    const renew = async (more: Partial<typeof leaseRequest>) => {
      const limits = [{ ...limitInUse, leaseRequest: { ...leaseRequest, ...more } }]
      const facts = await store.consult({ ...NO_STATE, limits, isRenewal: true, nowMs: Date.now() })
      return facts.limits[0] as RateLimit
    }
    const { grant, remaining } = await renew({})
    expect([grant?.units, remaining]).toEqual([20, 180])
    const returnedEndMicros = grant?.endMicros ?? 0
    expect(await renew({ units: 0, returned: 20, returnedEndMicros })).toMatchObject({
      remaining: 200,
      admitted: true,
    })
    expect(await redis.direct.exists(counterName(DEFAULT_KEYS, limitInUse.key))).toBe(0)
  })
})
