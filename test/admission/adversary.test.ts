/** What somebody who knows the limiters can get out of them. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createAdmission } from '../../src/admission/admission.ts'
import type { LimitEngine } from '../../src/admission/limit.ts'
import { createUpstashAdmissionStore } from '../../src/admission/redis/store.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { NEVER } from '../harness/never.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { ADDRESS, limitOf } from './callers.ts'

const LIMIT = 20
const WINDOW_MS = 60_000
/** Often enough to meet every moment at which one more request is counted. */
const STEP_MS = 1_000

/** In this process, so that it goes by the same clock. */
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis('embedded')
})
afterAll(() => redis.close())
afterEach(() => vi.useRealTimers())

/**
 * When requests were admitted, milliseconds since the epoch, of a caller who asks at `times` as
 * often as he is let through.
 */
async function admittedAt(times: readonly number[], engine: LimitEngine): Promise<number[]> {
  vi.useFakeTimers({ toFake: ['Date'] })
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })
  const store = createUpstashAdmissionStore(rest)
  const limits = [limitOf({ limit: LIMIT, windowSeconds: WINDOW_MS / 1_000, engine })]
  const admitted: number[] = []
  for (const atMs of times) {
    vi.setSystemTime(atMs)
    // An isolate that remembers nothing: the limiter itself is asked each time.
    const isolate = createAdmission({ store, now: Date.now })
    while (
      (await isolate.admit({ principal: null, address: ADDRESS, limits })).denial === undefined
    )
      admitted.push(atMs)
  }
  return admitted
}

/** Most of them within one window's length, wherever that begins. */
function worstOf(times: readonly number[]): number {
  const within = (fromMs: number) =>
    times.filter((atMs) => atMs >= fromMs && atMs < fromMs + WINDOW_MS).length
  return Math.max(...times.map(within))
}

/** Moments of three windows, from `fromMs` after the beginning of the first. */
function moments(fromMs: number): number[] {
  // Not in the past: Redis forgets by its own clock.
  const startMs = (Math.floor(Date.now() / WINDOW_MS) + 1) * WINDOW_MS
  const length = Math.ceil((3 * WINDOW_MS - fromMs) / STEP_MS)
  return Array.from({ length }, (_, n) => startMs + fromMs + n * STEP_MS)
}

describe('R16: the worst rolling window of a caller who is never let through less than he can be', () => {
  test.each([0, WINDOW_MS / 2, WINDOW_MS - 2])(
    'R16: from %i ms into a window on: the limit, and never more, in each window anew',
    async (fromMs) => {
      const times = await admittedAt(moments(fromMs), 'exact')
      expect(worstOf(times), NEVER).toBe(LIMIT)
      expect(times.length).toBeGreaterThanOrEqual(2 * LIMIT)
    },
  )

  test.each([0, WINDOW_MS / 2])(
    "R16: by the other engine's approximation, from %i ms into a window on: never more than twice the limit",
    async (fromMs) => {
      const times = await admittedAt(moments(fromMs), 'upstash')
      expect(times.length).toBeGreaterThanOrEqual(2 * LIMIT)
      expect(worstOf(times), NEVER).toBeLessThanOrEqual(2 * LIMIT)
    },
  )

  test('R16: and aimed at the boundary it is twice the limit, as the documentation says', async () => {
    expect(worstOf(await admittedAt(moments(WINDOW_MS - 2), 'upstash'))).toBe(2 * LIMIT)
  })
})
