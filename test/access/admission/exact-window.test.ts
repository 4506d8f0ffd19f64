/** Properties of the model of exact windows, which the scripts follow. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NEVER } from '../../harness/never.ts'
import { createModel } from './exact-model.ts'
import { leastBefore, type Outcome, type Schedule, SEED, schedules, worstOf } from './schedules.ts'

const RUNS = { seed: SEED, numRuns: 400 }
const REQUESTS = 600

function outcomesOf(schedule: Schedule, horizon = 1): Outcome[] {
  const { limit, windowSeconds, cost, gaps } = schedule
  const windowMicros = windowSeconds * 1e6
  const model = createModel({ limit, windowMicros, horizonMicros: horizon * windowMicros })
  let atMicros = 1e15
  return gaps.map((gap) => {
    atMicros += gap
    return { atMicros, admitted: model.admit(atMicros, cost).admitted }
  })
}

const isNeverOver = (schedule: Schedule, horizon?: number) =>
  worstOf(outcomesOf(schedule, horizon), schedule.windowSeconds * 1e6, schedule.cost) <=
  schedule.limit

describe('an exact window [R16]', () => {
  test('admits at most the limit in any rolling window, for every schedule [R16]', () => {
    fc.assert(
      fc.property(schedules(REQUESTS), (schedule) => isNeverOver(schedule)),
      RUNS,
    )
  })

  test('the property fails for a window that releases units one step early [R16]', () => {
    const broken = fc.check(
      fc.property(schedules(REQUESTS), (schedule) => isNeverOver(schedule, 7 / 8)),
      RUNS,
    )
    expect(broken.failed).toBe(true)
  })

  const isGenerous = (schedule: Schedule, horizon?: number) => {
    const { limit, windowSeconds, cost } = schedule
    const share = Math.max(cost, Math.floor(limit / 16))
    return leastBefore(outcomesOf(schedule, horizon), windowSeconds * 1e6, cost) > limit - share
  }

  test('refuses only after 15/16 of the limit in the last window; small limits are exact [R16]', () => {
    fc.assert(
      fc.property(schedules(REQUESTS), (schedule) => isGenerous(schedule)),
      RUNS,
    )
  })

  test('the property fails for a window that releases units one step late [R16]', () => {
    const broken = fc.check(
      fc.property(schedules(REQUESTS), (schedule) => isGenerous(schedule, 9 / 8)),
      RUNS,
    )
    expect(broken.failed).toBe(true)
  })

  test.each([1.05, 1.2, 2, 7, 100])(
    'at %f times the limit, admits at least 0.93 of the limit [R16]',
    (times) => {
      const [limit, windowSeconds, windows] = [100, 60, 40]
      const gap = Math.floor((windowSeconds * 1e6) / (limit * times))
      const gaps = Array<number>(Math.ceil(windows * limit * times)).fill(gap)
      const outcomes = outcomesOf({ limit, windowSeconds, cost: 1, gaps })
      const admitted = outcomes.filter((outcome) => outcome.admitted).length
      expect(admitted / (windows * limit)).toBeGreaterThanOrEqual(0.93)
      expect(leastBefore(outcomes, windowSeconds * 1e6, 1)).toBeGreaterThanOrEqual(94)
    },
  )

  test('has room again at the time it reports, and not before [R16]', () => {
    fc.assert(
      fc.property(schedules(200), ({ limit, windowSeconds, cost, gaps }) => {
        const make = () => createModel({ limit, windowMicros: windowSeconds * 1e6 })
        const [model, early, late] = [make(), make(), make()]
        let atMicros = 1e15
        for (const gap of gaps) {
          atMicros += gap
          const { admitted, waitMs } = model.admit(atMicros, cost)
          early.admit(atMicros, cost)
          late.admit(atMicros, cost)
          if (admitted) continue
          expect(early.admit(atMicros + waitMs * 1000 - 1000, cost).admitted).toBe(false)
          expect(late.admit(atMicros + waitMs * 1000, cost).admitted).toBe(true)
          return
        }
      }),
      RUNS,
    )
  })

  test('a limit of 1 has room again after exactly its window [R16]', () => {
    const model = createModel({ limit: 1, windowMicros: 60e6 })
    expect(model.admit(1e15, 1)).toMatchObject({ admitted: true, left: 0, waitMs: 60_000 })
    expect(model.admit(1e15 + 60e6 - 1, 1)).toMatchObject({ admitted: false, left: 0, waitMs: 1 })
    expect(model.admit(1e15 + 60e6, 1).admitted).toBe(true)
  })

  test('stores at most 40 shares, for any limit and cost [R18]', () => {
    fc.assert(
      fc.property(schedules(REQUESTS), ({ limit, windowSeconds, cost, gaps }) => {
        const model = createModel({ limit, windowMicros: windowSeconds * 1e6 })
        let atMicros = 1e15
        for (const gap of gaps) {
          atMicros += gap
          model.admit(atMicros, cost)
          if (model.shares().length > 40) return false
        }
        return true
      }),
      RUNS,
    )
  })

  test('a clock that is set back admits no extra request and refuses no caller for more than two windows [R17]', () => {
    const hour = 3_600e6
    const backs = fc.array(
      fc.record({ at: fc.nat(REQUESTS), micros: fc.integer({ min: 1, max: hour }) }),
    )
    fc.assert(
      fc.property(schedules(REQUESTS), backs, ({ limit, windowSeconds, cost, gaps }, steps) => {
        const windowMicros = windowSeconds * 1e6
        const model = createModel({ limit, windowMicros })
        // The real time, and how far the server's clock is behind it.
        let [realMicros, behind] = [1e15, 0]
        const outcomes = gaps.map((gap, index) => {
          realMicros += gap
          for (const { at, micros } of steps) if (at === index) behind += micros
          const { admitted } = model.admit(realMicros - behind, cost)
          return { atMicros: realMicros, admitted }
        })
        expect(worstOf(outcomes, windowMicros, cost), NEVER).toBeLessThanOrEqual(limit)
        const { waitMs } = model.admit(realMicros - behind, cost)
        expect(waitMs).toBeLessThanOrEqual((2 * windowMicros) / 1000)
        expect(model.admit(realMicros - behind + 2 * windowMicros, cost).admitted).toBe(true)
      }),
      RUNS,
    )
  })
})
