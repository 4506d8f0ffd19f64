/** Exact windows while operators, policies and the server's clock change. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAdmission } from '../../../../src/access/admission/admission.ts'
import { counterName, overrideKey } from '../../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../../src/access/admission/redis/store.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { readableScript } from '../../../harness/lua.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import { ADDRESS, limitOf, takenOf } from '../callers.ts'
import { SEED } from '../schedules.ts'

const REQUESTS = 120
const RUNS = { seed: SEED, numRuns: 10 }
const WINDOW_SECONDS = 60
const WINDOW_MICROS = WINDOW_SECONDS * 1e6

/** The script with a test clock in its last two arguments. */
const CLOCKED_SCRIPT = (await readableScript('access/admission/redis/admit.lua')).replace(
  "call('TIME')",
  '{ ARGV[#ARGV - 1], ARGV[#ARGV] }',
)

/** One future request: the changes before it, and the limits that it uses. */
const steps = fc.array(
  fc.record({
    gap: fc.oneof(
      { weight: 6, arbitrary: fc.constant(0) },
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 2e6 }) },
      { weight: 1, arbitrary: fc.integer({ min: WINDOW_MICROS - 2, max: WINDOW_MICROS + 2 }) },
    ),
    /** The time by which the server's clock is set back. */
    back: fc.oneof(
      { weight: 20, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 * WINDOW_MICROS }) },
    ),
    limit: fc.integer({ min: 1, max: 90 }),
    cost: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 30 })),
    /** Undefined: unchanged; 0: lifted. */
    override: fc.oneof(
      { weight: 9, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 120 }) },
    ),
    mode: fc.constantFrom('enforce', 'enforce', 'observe' as const),
  }),
  { minLength: REQUESTS / 2, maxLength: REQUESTS },
)

describe.each(REDIS_PROTOCOLS)('changes during a window ($name)', ({ prefer, connect }) => {
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
      send([command = []]) {
        const clock = [Math.floor(micros() / 1e6), micros() % 1e6]
        return rest.send([['EVAL', CLOCKED_SCRIPT, ...command.slice(2), ...clock]])
      },
    }
    return createRedisAdmissionStore(changed)
  }

  test('changed limits, overrides, costs and modes never admit more than the limit in force [R16]', async () => {
    const outcomes = { admitted: 0, refused: 0 }
    const property = fc.asyncProperty(steps, async (schedule) => {
      let [real, setBack] = [1_795_000_000_000_000, 0]
      const store = clocked(() => real - setBack)
      const [first, second] = [limitOf(), limitOf()]
      const admissions: { atMicros: number; units: number }[] = []
      let override = 0
      for (const { gap, back, limit, cost, override: change, mode } of schedule) {
        real += gap
        setBack += back
        if (change !== undefined) {
          override = change
          const key = overrideKey(DEFAULT_KEYS, first.key)
          await (change === 0 ? redis.direct.del(key) : redis.direct.set(key, change))
        }
        const windowSeconds = WINDOW_SECONDS
        const rules = [
          { ...first.rule, windowSeconds, limit: Math.max(limit, cost), cost },
          { ...second.rule, windowSeconds, limit: 20, mode },
        ] as const
        const before = takenOf(await redis.direct.get(counterName(DEFAULT_KEYS, second.key)))
        const verdict = await createAdmission({ store, now: Date.now }).admit({
          principal: null,
          address: ADDRESS,
          limits: [
            { ...first, rule: rules[0] },
            { ...second, rule: rules[1] },
          ],
        })
        const inForce = override === 0 ? rules[0].limit : override
        const used = admissions
          .filter(({ atMicros }) => atMicros > real - WINDOW_MICROS)
          .reduce((total, { units }) => total + units, 0)
        const [state, other] = verdict.limits
        expect(state?.limit).toBe(inForce)
        if (verdict.denial === undefined) {
          expect(used + cost).toBeLessThanOrEqual(inForce)
          expect(state?.remaining).toBeLessThanOrEqual(inForce - used - cost)
          admissions.push({ atMicros: real, units: cost })
        } else {
          expect(state?.remaining).toBeLessThanOrEqual(Math.max(0, inForce - used))
          const after = takenOf(await redis.direct.get(counterName(DEFAULT_KEYS, second.key)))
          if (back === 0 && other?.admitted === true) expect(after).toBe(before)
        }
        outcomes[verdict.denial === undefined ? 'admitted' : 'refused'] += 1
      }
    })
    await fc.assert(property, RUNS)
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(REQUESTS)
  })
})
