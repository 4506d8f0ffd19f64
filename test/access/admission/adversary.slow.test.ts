/** The most that a caller who understands the limiters can get from them. */

import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import type { LimitEngine } from '../../../src/access/admission/limit.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { NEVER } from '../../harness/never.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, limitOf } from './callers.ts'

const LIMIT = 20
const WINDOW_MS = 60_000
/** Frequent enough to find every moment at which one more request is admitted. */
const STEP_MS = 1_000

/** Runs in this process, so that it uses the same clock. */
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis('embedded')
})
afterAll(() => redis.close())
afterEach(() => vi.useRealTimers())

/**
 * Returns when requests were admitted, in milliseconds since the epoch, for a caller who tries at
 * each of `times` until refused.
 */
async function admittedAt(times: readonly number[], engine: LimitEngine): Promise<number[]> {
  vi.useFakeTimers({ toFake: ['Date'] })
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  const store = createRedisAdmissionStore(rest)
  const limits = [limitOf({ limit: LIMIT, windowSeconds: WINDOW_MS / 1_000, engine })]
  const admitted: number[] = []
  for (const atMs of times) {
    vi.setSystemTime(atMs)
    // An isolate with an empty memory: every request reaches the limiter.
    const isolate = createAdmission({ store, now: Date.now })
    while (
      (await isolate.admit({ principal: null, address: ADDRESS, limits })).denial === undefined
    )
      admitted.push(atMs)
  }
  return admitted
}

/** Returns the largest number of requests within one window's length, at any offset. */
function worstOf(times: readonly number[]): number {
  const within = (fromMs: number) =>
    times.filter((atMs) => atMs >= fromMs && atMs < fromMs + WINDOW_MS).length
  return Math.max(...times.map(within))
}

/**
 * Returns the times of attempts in three windows, beginning `fromMs` after the start of the first
 * window.
 */
function moments(fromMs: number): number[] {
  // Not in the past, because Redis expires keys by its own clock.
  const startMs = (Math.floor(Date.now() / WINDOW_MS) + 1) * WINDOW_MS
  const length = Math.ceil((3 * WINDOW_MS - fromMs) / STEP_MS)
  return Array.from({ length }, (_, n) => startMs + fromMs + n * STEP_MS)
}

describe('the worst rolling window of a caller who uses every unit as soon as possible [R16]', () => {
  test.each([0, WINDOW_MS / 2, WINDOW_MS - 2])(
    'starting %i ms into a window, admits exactly the limit in each window [R16]',
    async (fromMs) => {
      const times = await admittedAt(moments(fromMs), 'exact')
      expect(worstOf(times), NEVER).toBe(LIMIT)
      expect(times.length).toBeGreaterThanOrEqual(2 * LIMIT)
    },
  )

  test.each([0, WINDOW_MS / 2])(
    'with the upstash engine, starting %i ms into a window, admits at most twice the limit [R16]',
    async (fromMs) => {
      const times = await admittedAt(moments(fromMs), upstash())
      expect(times.length).toBeGreaterThanOrEqual(2 * LIMIT)
      expect(worstOf(times), NEVER).toBeLessThanOrEqual(2 * LIMIT)
    },
  )

  test('with the upstash engine, an attack on the boundary gets twice the limit, as documented [R16]', async () => {
    expect(worstOf(await admittedAt(moments(WINDOW_MS - 2), upstash()))).toBe(2 * LIMIT)
  })
})
