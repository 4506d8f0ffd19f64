/**
 * The script for references counts like the limiter for all other requests. Both run over random
 * histories at random moments, with and without an operator's override, on windows of the same
 * content. Results and writes must be equal.
 */

import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import type { RateLimit } from '../../../../src/access/admission/limit.ts'
import { counterName, overrideKey } from '../../../../src/access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../../../src/access/admission/redis/store.ts'
import { createReferenceStore } from '../../../../src/access/tokens/redis/references.ts'
import { upstash } from '../../../../src/features/upstash/index.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { usualOrLong } from '../../../harness/long.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import { GATEWAY, recordOf, stored } from '../callers.ts'

const ROUNDS = usualOrLong(75, 150)
const SEED = 20_261_120

/** mulberry32: the same numbers in every run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

describe.each(REDIS_PROTOCOLS)(
  'windows counted by the reference script ($name)',
  ({ prefer, connect }) => {
    let redis: TestRedis
    beforeAll(async () => {
      redis = await startTestRedis(prefer)
    })
    afterAll(() => redis.close())
    afterEach(() => {
      vi.useRealTimers()
    })

    test('have the results and writes of the limiter, after any history [R15]', async () => {
      const rest = connect(redis)
      const store = createRedisAdmissionStore(rest)
      const reference = await stored(createReferenceStore(rest), recordOf())
      const random = randomOf(SEED)
      const outcomes = { admitted: 0, refused: 0, overridden: 0 }
      // Only the clock is frozen: Redis' own time continues, and so do timers.
      vi.useFakeTimers({ toFake: ['Date'] })

      for (let round = 0; round < ROUNDS; round++) {
        const limit = 1 + random(12)
        const windowSeconds = [1, 7, 60, 86_400][random(4)] ?? 1
        const windowMs = windowSeconds * 1000
        const nowMs = Date.UTC(2030, 0, 1) + random(5 * windowMs)
        const rule = {
          name: 'test',
          limit,
          windowSeconds,
          ...({ onUnavailable: 'deny', engine: upstash() } as const),
        }
        vi.setSystemTime(nowMs)

        const number = Math.floor(nowMs / windowMs)
        const [previous, current] = [random(2 * limit + 2), random(limit + 2)]
        const override = random(3) === 0 ? 1 + random(20) : undefined
        const keys = [`limiter-${round}`, `script-${round}`] as const
        for (const key of keys) {
          if (previous > 0)
            await redis.direct.set(`${counterName(DEFAULT_KEYS, key)}:${number - 1}`, previous)
          if (current > 0)
            await redis.direct.set(`${counterName(DEFAULT_KEYS, key)}:${number}`, current)
          if (override !== undefined)
            await redis.direct.set(overrideKey(DEFAULT_KEYS, key), override)
        }

        const byLimiter = await store.consult({
          revocation: { cacheKey: '', token: undefined, revokedBefore: [], issuedAtSeconds: 0 },
          bans: [{ by: 'address', key: 'none' }],
          limits: [{ rule, key: keys[0] }],
          nowMs,
        })
        const byScript = await store.resolve({
          reference,
          audience: GATEWAY,
          thumbprint: undefined,
          addressBan: 'none',
          limits: [{ rule, window: { key: keys[1] } }],
          proof: undefined,
          nowMs,
        })

        const expected = byLimiter.limits[0] as RateLimit
        const history = {
          round,
          limit,
          windowMs,
          at: nowMs % windowMs,
          previous,
          current,
          override,
        }
        expect(byScript.limits, JSON.stringify(history)).toEqual([
          { key: keys[1], state: expected },
        ])
        expect(expected.limit).toBe(override ?? limit)
        const written = await Promise.all(
          keys.map((key) => redis.direct.get(`${counterName(DEFAULT_KEYS, key)}:${number}`)),
        )
        expect(written[1], JSON.stringify(history)).toBe(written[0])
        const lives = await Promise.all(
          keys.map((key) => redis.direct.pttl(`${counterName(DEFAULT_KEYS, key)}:${number}`)),
        )
        expect(Math.abs((lives[0] ?? 0) - (lives[1] ?? 0))).toBeLessThan(1_000)
        outcomes[expected.admitted ? 'admitted' : 'refused'] += 1
        if (override !== undefined) outcomes.overridden += 1
      }
      // The random histories must produce both outcomes often.
      expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(ROUNDS / 6)
    })
  },
)
