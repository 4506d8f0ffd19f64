/** The script of metered limits decides what the specification in memory decides. */
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { planRecordOf } from '../../../src/access/admission/plan-record.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { AdmissionStore } from '../../../src/access/admission/store.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import { plans } from '../../../src/features/plans/index.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createMemoryStore } from '../../../src/testing/memory-store.ts'
import { endOfPeriod } from '../../../src/testing/metered-window.ts'
import { principal } from '../../access/admission/callers.ts'
import { SEED } from '../../access/admission/schedules.ts'
import { readableScript } from '../../harness/lua.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../harness/redis-protocols.ts'
import { requestsOf } from './limits.ts'

const CLOCKED_SCRIPT = (await readableScript('features/plans/redis/admit-metered.lua')).replace(
  "call('TIME')",
  '{ table.remove(ARGV), table.remove(ARGV) }',
)
/** Returns the microseconds and then the seconds, because the script removes the last one first. */
const clockOf = (micros: number): [number, number] => [micros % 1e6, Math.floor(micros / 1e6)]

const group = plans({
  plans: {
    free: { rate: ['4/min', '9/h'], perDay: 12, concurrency: 2 },
    pro: { rate: '8/min', perDay: 30, perMonth: 60, concurrency: 4 },
    unlimited: { concurrency: 100 },
  },
  default: 'free',
})

const DAY = 86_400e6
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('request' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('release' as const), at: fc.nat(9) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('plan' as const),
      by: fc.constantFrom('client' as const, 'tenant' as const),
      plan: fc.constantFrom('free', 'pro', 'unlimited', 'unknown', undefined),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      micros: fc.oneof(
        fc.integer({ min: 0, max: 2e6 }),
        fc.integer({ min: 1e6, max: 70e6 }),
        fc.integer({ min: 1, max: DAY }),
        fc.constantFrom(DAY, 20 * DAY),
      ),
    }),
  },
)

describe.each(REDIS_PROTOCOLS)('the script of metered limits ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterEach(() => vi.restoreAllMocks())
  afterAll(() => redis.close())

  test('plans, quotas, rates and slots agree with the model over random schedules', async () => {
    const outcomes = { admitted: 0, refused: 0 }
    let runs = 0
    const steps = fc.array(step, { minLength: 30, maxLength: 60 })
    const property = fc.asyncProperty(steps, async (schedule) => {
      await redis.direct.flushall()
      let micros = 1_795_000_000_000_000
      vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(micros / 1000))
      const rest = connect(redis)
      const clocked: RedisConnection = {
        keys: DEFAULT_KEYS,
        send: ([command = []]) =>
          command[0] === 'EVALSHA'
            ? rest.send([['EVAL', CLOCKED_SCRIPT, ...command.slice(2), ...clockOf(micros)]])
            : rest.send([command]),
      }
      const real = createRedisAdmissionStore(clocked)
      const memory = createMemoryStore(() => micros / 1000)
      const caller = principal()
      runs += 1
      const held: (() => Promise<unknown>)[] = []
      const consult = async (
        store: AdmissionStore,
        limits: Awaited<ReturnType<typeof requestsOf>>,
      ) => store.consult({ revocation: NOTHING_REVOCABLE, bans: [], limits, nowMs: Date.now() })
      for (const one of schedule) {
        if (one.do === 'wait') micros += one.micros
        if (one.do === 'release') await held.splice(one.at, 1)[0]?.()
        if (one.do === 'plan') {
          const [issuer, value] = [
            caller.issuer,
            (one.by === 'client' ? caller.client : caller.tenant) ?? '',
          ]
          const key = DEFAULT_KEYS.plan + (await planRecordOf(one.by, issuer, value))
          if (one.plan === undefined) {
            memory.plans.delete(key)
            await redis.direct.del(key)
          } else {
            memory.plans.set(key, one.plan)
            await redis.direct.set(key, one.plan)
          }
        }
        if (one.do !== 'request') continue
        const limits = await requestsOf(group, `run-${runs}`, caller)
        const [found, expected] = [
          await consult(real, limits),
          await consult(memory.admission, limits),
        ]
        const shown = (facts: typeof found) =>
          facts.limits.map((state) => {
            if (state === undefined || state instanceof Error) return state
            const { rule, limit, remaining, resetMs, admitted } = state
            const isPresent = limit > 0
            return [rule.name, limit, remaining, isPresent && resetMs, admitted]
          })
        expect(shown(found)).toEqual(shown(expected))
        const isAdmitted = expected.limits.every(
          (state) => state && 'admitted' in state && state.admitted,
        )
        outcomes[isAdmitted ? 'admitted' : 'refused'] += 1
        if (!isAdmitted) continue
        held.push(async () => {
          for (const facts of [found, expected])
            for (const state of facts.limits)
              if (state && 'slot' in state) await state.slot?.release()
        })
      }
    })
    await fc.assert(property, { seed: SEED, numRuns: 12 })
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(30)
  })

  test('a quota begins again with each calendar day and month of 60 years', async () => {
    const rest = connect(redis)
    const month = await requestsOf(
      plans({ plans: { one: { perMonth: 1, perDay: 1 } }, default: 'one' }),
      'calendar',
    )
    for (let year = 1995; year < 2055; year += 3) {
      for (const day of [0, 30, 31, 58, 59, 60, 364]) {
        const micros = Date.UTC(year, 0, 1 + day, 23, 59, 58) * 1000 + 250_000
        const clocked: RedisConnection = {
          keys: DEFAULT_KEYS,
          send: ([command = []]) =>
            rest.send([['EVAL', CLOCKED_SCRIPT, ...command.slice(2), ...clockOf(micros)]]),
        }
        vi.spyOn(Date, 'now').mockReturnValue(0)
        const { limits } = await createRedisAdmissionStore(clocked).consult({
          revocation: NOTHING_REVOCABLE,
          bans: [],
          limits: month.map((limit) => ({ ...limit, key: `${limit.key}-${year}-${day}` })),
          nowMs: 0,
        })
        const ends = ['day', 'month'] as const
        expect(limits).toMatchObject(
          ends.map((period) => ({
            resetMs: Math.ceil((endOfPeriod(micros, period) - micros) / 1000),
          })),
        )
      }
    }
  })
})
