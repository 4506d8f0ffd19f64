/** Property of leases: no rolling window ever exceeds the limit. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NEVER } from '../../harness/never.ts'
import type { ModelOptions } from './exact-model.ts'
import { type Happening, live, type World, type Wrongs } from './lease-world.ts'
import { SEED, worstOf } from './schedules.ts'

/** 100,000 schedules take several minutes: `LEASE_SCHEDULES=100000`. */
const RUNS = { seed: SEED, numRuns: Number(process.env.LEASE_SCHEDULES ?? 400) }
/** The time for one schedule on a slow machine. */
const MS_A_SCHEDULE = 10
const HAPPENINGS = 300

const worlds = fc
  .record({
    limit: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 41, max: 400 })),
    windowSeconds: fc.constantFrom(1, 2, 10),
    ttlShare: fc.constantFrom(0.05, 0.1, 0.25),
    costShare: fc.double({ min: 0, max: 1, noNaN: true }),
    maxShare: fc.constantFrom(0.1, 0.5, 1, 4),
    isolates: fc.integer({ min: 1, max: 4 }),
    pace: fc.constantFrom(0.5, 1.1, 2, 8),
    forecast: fc.constantFrom(1, 16),
  })
  .chain(({ limit, windowSeconds, ttlShare, costShare, maxShare, isolates, pace, forecast }) => {
    const windowMicros = windowSeconds * 1e6
    const cost = costShare < 0.8 ? 1 : Math.max(1, Math.floor((costShare - 0.8) * limit))
    const most = Math.max(1, Math.floor((windowMicros * cost) / (pace * limit)))
    const happening: fc.Arbitrary<Happening> = fc.record({
      gap: fc.oneof(
        { weight: 6, arbitrary: fc.constant(0) },
        { weight: 30, arbitrary: fc.integer({ min: 0, max: most }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: Math.ceil(windowMicros / 4) }) },
        { weight: 1, arbitrary: fc.integer({ min: windowMicros / 2, max: windowMicros + 2 }) },
      ),
      isolate: fc.nat(3),
      crashes: fc.integer({ min: 0, max: 99 }).map((number) => number === 0),
      fate: fc.oneof(
        { weight: 20, arbitrary: fc.constant('answered' as const) },
        { weight: 1, arbitrary: fc.constantFrom('unsent' as const, 'lost' as const) },
        { weight: 1, arbitrary: fc.constant('repeated' as const) },
      ),
      there: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.3, noNaN: true })),
      back: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.3, noNaN: true })),
      lag: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true })),
    })
    return fc.record({
      limit: fc.constant(limit),
      windowMicros: fc.constant(windowMicros),
      cost: fc.constant(cost),
      max: fc.constant(Math.max(cost, Math.ceil(limit * maxShare))),
      ttlMs: fc.constant(Math.max(50, Math.floor((windowMicros * ttlShare) / 1000))),
      isolates: fc.constant(isolates),
      forecast: fc.constant(forecast),
      happenings: fc.array(happening, { minLength: HAPPENINGS / 2, maxLength: HAPPENINGS }),
    })
  })

const isNeverOver = (world: World, wrongs?: Wrongs) =>
  worstOf(live(world, wrongs).outcomes, world.windowMicros, world.cost) <= world.limit

describe('leases [R16]', () => {
  test('never let a rolling window exceed the limit, whatever happens to calls and isolates [R16]', {
    timeout: 60_000 + RUNS.numRuns * MS_A_SCHEDULE,
  }, () => {
    const seen = { local: 0, returned: 0, refused: 0 }
    fc.assert(
      fc.property(worlds, (world) => {
        const { outcomes, local, returned } = live(world)
        seen.local += local
        seen.returned += returned
        seen.refused += outcomes.filter(({ admitted }) => !admitted).length
        expect(worstOf(outcomes, world.windowMicros, world.cost), NEVER).toBeLessThanOrEqual(
          world.limit,
        )
      }),
      RUNS,
    )
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(RUNS.numRuns)
  })

  const broken: [string, Partial<ModelOptions>, Wrongs][] = [
    ['count only when they are spent', { leasedAt: () => undefined }, {}],
    ['count from the time of the grant', { leasedAt: (nowMicros) => nowMicros }, {}],
    ['are held for half of the time that they may be spent in', {}, { heldShare: 0.5 }],
    ['are returned twice', {}, { repeatsRenewals: true }],
    ['are returned after they have left the window', { returnMicros: 1e12 }, { windowMs: 1e9 }],
  ]
  test.each(broken)('the property fails for units that %s [R16]', (_, options, wrongs) => {
    const most = { ...options, forecast: 1 }
    const property = fc.property(worlds, (world) => isNeverOver({ ...world, ...most }, wrongs))
    expect(fc.check(property, { ...RUNS, numRuns: 20_000, endOnFailure: true }).failed).toBe(true)
  })

  /** Four isolates receive requests in turn at a multiple of the limit, for forty windows. */
  /** Returns what each window admits of evenly spaced requests, as a part of the limit. */
  function shares(times: number, ttlMs: number): readonly number[] {
    const [limit, windowMicros, windows] = [100, 2e6, 40]
    const gap = Math.floor(windowMicros / (limit * times))
    const happenings = Array.from({ length: Math.ceil(windows * limit * times) }, (_, index) => ({
      gap,
      isolate: index,
      crashes: false,
      fate: 'answered' as const,
      there: 0.005,
      back: 0.005,
      lag: 0,
    }))
    const world = { limit, windowMicros, cost: 1, max: limit, ttlMs, isolates: 4, happenings }
    const { outcomes } = live(world)
    expect(worstOf(outcomes, windowMicros, 1), NEVER).toBeLessThanOrEqual(limit)
    const counts = Array<number>(windows).fill(0)
    const startMicros = outcomes[0]?.atMicros ?? 0
    for (const { atMicros, admitted } of outcomes) {
      const at = Math.floor((atMicros - startMicros) / windowMicros)
      if (admitted && at < windows) counts[at] = (counts[at] ?? 0) + 1
    }
    return counts.map((count) => count / limit)
  }

  const overloads = [1.05, 1.2, 2, 7].flatMap((times) =>
    [100, 250, 500].map((ttlMs) => [times, ttlMs] as const),
  )
  test.each(overloads)(
    'admit at least 0.93 of the limit in each window at %f times the limit, for %i ms [R16]',
    (times, ttlMs) => {
      expect(Math.min(...shares(times, ttlMs))).toBeGreaterThanOrEqual(0.93)
    },
  )

  test.each([0.5, 0.7, 0.9])('refuse almost nothing at %f of the limit [R16]', (times) => {
    for (const ttlMs of [100, 250, 500])
      expect(Math.min(...shares(times, ttlMs)) / times).toBeGreaterThanOrEqual(0.97)
  })

  test('the property fails for windows that release units an eighth early [R16]', () => {
    const property = fc.property(worlds, (world) =>
      isNeverOver({ ...world, horizonMicros: (world.windowMicros * 7) / 8 }),
    )
    expect(fc.check(property, { ...RUNS, numRuns: 4_000, endOnFailure: true }).failed).toBe(true)
  })
})
