/** The stores in memory follow the same models as the scripts in Redis. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressBanKey } from '../../src/access/abuse/ban.ts'
import { NOTHING_REVOCABLE } from '../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import {
  createMemoryFailureCounter,
  createMemoryViolationCounter,
} from '../../src/testing/memory-counters.ts'
import { createMemoryStore } from '../../src/testing/memory-store.ts'
import { limitOf } from '../access/admission/callers.ts'
import { createModel } from '../access/admission/exact-model.ts'
import { SEED, schedules } from '../access/admission/schedules.ts'
import { bansOf, type Refusal, rules, step } from '../access/admission/violation-model.ts'

const REQUESTS = 200
const START_MS = 1_800_000_000_000

describe('stores in memory', () => {
  test('limits agree with the model over random schedules, also if the clock is set back [R15, R16, R17]', () => {
    const backs = fc.array(
      fc.record({ at: fc.nat(REQUESTS), micros: fc.integer({ min: 1, max: 600e6 }) }),
      { maxLength: 2 },
    )
    const outcomes = { admitted: 0, refused: 0 }
    const property = fc.asyncProperty(schedules(REQUESTS), backs, async (schedule, steps) => {
      const { limit, windowSeconds, cost, gaps } = schedule
      const model = createModel({ limit, windowMicros: windowSeconds * 1e6 })
      let micros = 1_795_000_000_000_000
      const { admission } = createMemoryStore(() => micros / 1000)
      const limits = [limitOf({ limit, windowSeconds, cost })]
      for (const [index, gap] of gaps.entries()) {
        micros += gap
        for (const each of steps) if (each.at === index) micros -= each.micros
        const { admitted, left, waitMs } = model.admit(micros, cost)
        const query = { revocation: NOTHING_REVOCABLE, bans: [], limits, nowMs: micros / 1000 }
        const resetMs = Math.floor(micros / 1000) + waitMs
        expect((await admission.consult(query)).limits).toMatchObject([
          { limit, remaining: left, admitted, resetMs },
        ])
        outcomes[admitted ? 'admitted' : 'refused'] += 1
      }
    })
    return fc
      .assert(property, { seed: SEED, numRuns: 60 })
      .then(() => expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(REQUESTS))
  })

  test('violations cause the bans of the model [S44]', async () => {
    let earned = 0
    const property = fc.asyncProperty(
      rules,
      fc.array(step, { minLength: 10, maxLength: 60 }),
      async (rule, steps) => {
        let nowMs = START_MS
        const now = () => nowMs
        const { bans } = createMemoryStore(now)
        const counter = createMemoryViolationCounter(bans, now)
        const refusals: Refusal[] = []
        for (const { gapMs, of } of steps) {
          nowMs += gapMs
          refusals.push({ atMs: nowMs, of })
          const { banSeconds } = await counter.count({ kind: 'address', value: 'a' }, of, rule)
          const bansOfModel = bansOf(refusals, rule, { isForgotten: true })
          const endsAtSeconds = bansOfModel.at(-1)?.endsAtSeconds ?? 0
          expect(banSeconds).toBe(Math.max(0, Math.ceil(endsAtSeconds - nowMs / 1000)))
          const isBanned = endsAtSeconds * 1000 > nowMs
          expect(bans.get(await addressBanKey(DEFAULT_KEYS, 'a'))).toBe(
            isBanned ? endsAtSeconds : undefined,
          )
        }
        earned += bansOf(refusals, rule).length
      },
    )
    await fc.assert(property, { seed: SEED, numRuns: 100 })
    expect(earned).toBeGreaterThan(50)
  })

  test('failed authentications count from the first one, for one window', async () => {
    let nowMs = START_MS
    const counter = createMemoryFailureCounter(() => nowMs)
    expect(await counter.count('a', 60)).toEqual({ count: 1, resetSeconds: 60 })
    nowMs += 59_500
    expect(await counter.count('a', 60)).toEqual({ count: 2, resetSeconds: 1 })
    expect(await counter.count('b', 60)).toEqual({ count: 1, resetSeconds: 60 })
    nowMs += 500
    expect(await counter.count('a', 60)).toEqual({ count: 1, resetSeconds: 60 })
  })
})
