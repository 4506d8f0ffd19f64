/** The Lua scripts decide, count and write what the specification of an exact window requires. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { counterName } from '../../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../../src/access/admission/redis/store.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { ADMIT_SCRIPT, READ_CHANGES_SCRIPT } from '../../../../src/redis/scripts.generated.ts'
import { usualOrLong } from '../../../harness/long.ts'
import { readableScript } from '../../../harness/lua.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import { limitOf } from '../callers.ts'
import { createModel } from '../exact-model.ts'
import { SEED, schedules } from '../schedules.ts'

const REQUESTS = 80
const RUNS = { seed: SEED, numRuns: usualOrLong(8, 15) }

/** The script with a test clock in its last two arguments. */
const CLOCKED_SCRIPT = (await readableScript('access/admission/redis/admit.lua')).replace(
  "call('TIME')",
  '{ ARGV[#ARGV - 1], ARGV[#ARGV] }',
)
const clockOf = (micros: number): [number, number] => [Math.floor(micros / 1e6), micros % 1e6]
const text = (number: number, digits: number) => String(number).padStart(digits, '0')

test('the admission script and the feed script read the clock once each', () => {
  expect(ADMIT_SCRIPT.split("'TIME'").length).toBe(2)
  expect(CLOCKED_SCRIPT.split("'TIME'").length).toBe(1)
  expect(READ_CHANGES_SCRIPT.split("'TIME'").length).toBe(2)
})

describe.each(REDIS_PROTOCOLS)('the admission script ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())

  /** A store over a Redis with the clock `micros()`, and the last result of its script. */
  function clocked(micros: () => number) {
    const rest = connect(redis)
    let returned: unknown
    const changed: RedisConnection = {
      keys: DEFAULT_KEYS,
      async send([command = []]) {
        const [reply = {}] = await rest.send([
          ['EVAL', CLOCKED_SCRIPT, ...command.slice(2), ...clockOf(micros())],
        ])
        returned = reply.result
        return [reply]
      },
    }
    return { store: createRedisAdmissionStore(changed), returned: () => returned }
  }

  const backs = fc.array(
    fc.record({ at: fc.nat(REQUESTS), micros: fc.integer({ min: 1, max: 600e6 }) }),
    { maxLength: 2 },
  )

  test('agrees with the model over random schedules, also if the clock is set back [R15, R16, R17]', async () => {
    const outcomes = { admitted: 0, refused: 0 }
    const property = fc.asyncProperty(schedules(REQUESTS, [60]), backs, async (schedule, steps) => {
      const { limit, windowSeconds, cost, gaps } = schedule
      const model = createModel({ limit, windowMicros: windowSeconds * 1e6 })
      let micros = 1_795_000_000_000_000
      const { store, returned } = clocked(() => micros)
      const limitInUse = limitOf({ limit, windowSeconds, cost })
      for (const [index, gap] of gaps.entries()) {
        micros += gap
        for (const step of steps) if (step.at === index) micros -= step.micros
        const expected = model.admit(micros, cost)
        const { limits } = await store.consult({
          revocation: { cacheKey: '', token: undefined, revokedBefore: [], issuedAtSeconds: 0 },
          bans: [],
          limits: [limitInUse],
          nowMs: Date.now(),
        })
        const { admitted, left, waitMs } = expected
        expect(returned()).toEqual([0, 0, limit, admitted ? left : -1 - left, waitMs])
        expect(limits).toMatchObject([{ limit, remaining: left, admitted }])
        outcomes[admitted ? 'admitted' : 'refused'] += 1
        if (!admitted) continue
        const shares = model.shares()
        const used = shares.reduce((total, { units }) => total + units, 0)
        const written = shares.map(({ atMicros, units }) => text(atMicros, 16) + text(units, 10))
        const window = await redis.direct.get(counterName(DEFAULT_KEYS, limitInUse.key))
        expect(window).toBe(text(used, 10) + written.join(''))
      }
    })
    await fc.assert(property, RUNS)
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(REQUESTS)
  })
})
