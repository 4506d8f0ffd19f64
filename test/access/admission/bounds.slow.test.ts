/**
 * Bounds on the memory that many callers, hostile names and wrong clocks use in Redis and in an
 * isolate.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import type { LimitEngine } from '../../../src/access/admission/limit.ts'
import { limitKeyOf } from '../../../src/access/admission/limit-key.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRefusals } from '../../../src/access/admission/verdict.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { NEVER } from '../../harness/never.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { ADDRESS, limitOf } from './callers.ts'

const MEGABYTE = 1_048_576
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())
beforeEach(() => redis.direct.flushall())
afterEach(() => vi.useRealTimers())

function isolate() {
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  return createAdmission({ store: createRedisAdmissionStore(rest), now: Date.now })
}

/** The overhead of Redis for each key. */
const OVERHEAD_BYTES = 128

/** Returns the memory of a key as reported by Redis, or an estimate for the embedded Redis. */
async function bytesOf(key: string): Promise<number> {
  const reported = await redis.direct.memory('USAGE', key).catch(() => undefined)
  return Number(reported ?? key.length + (await redis.direct.strlen(key)) + OVERHEAD_BYTES)
}

describe('100,000 callers of one limit [R18]', () => {
  const CALLERS = 100_000
  const SAMPLE = 300
  const WINDOW_SECONDS = 60
  /**
   * For the longest encoded name of a caller; see `MAX_PART_CHARACTERS` in src/redis/key-part.ts.
   */
  const MAX_KEY_BYTES = 512
  const MAX_ENTRY_BYTES = 1_024

  /** Returns the n-th caller. The names are hostile in several ways. */
  function callerOf(n: number): string {
    const hostile = [
      '',
      ':',
      '*',
      '{a}',
      '\u0000',
      '\r\n',
      '\ud800',
      'x'.repeat(10_240),
      ':'.repeat(160),
    ]
    return `${hostile[n % hostile.length]}${n}`
  }
  const keyOf = (n: number) =>
    limitKeyOf(
      { name: 'standard', by: 'subject' },
      { issuer: 'https://idp.test', value: callerOf(n) },
    )

  test('use 100,000 bounded keys [R18]', async () => {
    const keys = new Set<string>()
    for (let n = 0; n < CALLERS; n++) {
      const key = await keyOf(n)
      if (key.length > MAX_KEY_BYTES) throw new Error(`${n}: ${key.length} characters`)
      keys.add(key)
    }
    expect(keys.size).toBe(CALLERS)
  })

  test('use at most 100 MB, for one window [R18]', async () => {
    const gateway = isolate()
    const before = new Set(await redis.direct.keys('*'))
    for (let n = 0; n < SAMPLE; n++) {
      const limit = limitOf({ windowSeconds: WINDOW_SECONDS })
      const limits = [{ ...limit, key: await keyOf(n) }]
      await gateway.admit({ principal: null, address: ADDRESS, limits })
    }
    const keys = (await redis.direct.keys('*')).filter((key) => !before.has(key))
    expect(keys.length).toBe(SAMPLE)
    const sizes: number[] = []
    for (const key of keys) {
      sizes.push(await bytesOf(key))
      const ttlMs = await redis.direct.pttl(key)
      expect(ttlMs, key).toBeGreaterThan(0)
      expect(ttlMs, key).toBeLessThanOrEqual(WINDOW_SECONDS * 1_000 + 2)
    }
    expect(Math.min(...sizes)).toBeGreaterThan(0)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_ENTRY_BYTES)
    expect(Math.max(...sizes) * CALLERS).toBeLessThanOrEqual(100 * MEGABYTE)
  })
})

describe('the refusals that an isolate caches [R19]', () => {
  test('are at most 10,000, and the least recently used are evicted first [R19]', () => {
    const REFUSED = 300_000
    const { revoked } = createRefusals()
    for (let n = 0; n < REFUSED; n++) {
      revoked.set(`key-${n}`, { reason: 'token', untilMs: n })
      revoked.get('key-0')
    }
    let storedCount = 0
    for (let n = 0; n < REFUSED; n++) {
      const cached = revoked.get(`key-${n}`)
      if (cached === undefined) continue
      storedCount += 1
      expect(cached).toEqual({ reason: 'token', untilMs: n })
    }
    expect(storedCount).toBe(10_000)
    expect(revoked.get('key-0')).toBeDefined()
    expect(revoked.get(`key-${REFUSED - 1}`)).toBeDefined()
    expect(revoked.get('key-1')).toBeUndefined()
  })
})

describe('clocks [R17]', () => {
  const WINDOW_MS = 60_000
  const SKEW_MS = 5_000
  const LIMIT = 10

  /** Sends 60 requests at `atMs` to isolates with early, correct and late clocks in turn. */
  async function admittedAt(atMs: number, engine: LimitEngine) {
    vi.useFakeTimers({ toFake: ['Date'] })
    const limit = limitOf({ limit: LIMIT, windowSeconds: WINDOW_MS / 1_000, engine })
    const isolates = [isolate(), isolate(), isolate()]
    let admitted = 0
    for (let n = 0; n < 60; n++) {
      // The clock does not advance while code runs, as on Workers.
      vi.setSystemTime(atMs + ((n % 3) - 1) * SKEW_MS)
      const { denial, limits } =
        (await isolates[n % 3]?.admit({ principal: null, address: ADDRESS, limits: [limit] })) ?? {}
      if (denial === undefined) admitted += 1
      for (const { remaining, resetMs } of limits ?? []) {
        expect(remaining).toBeGreaterThanOrEqual(0)
        expect(resetMs).toBeGreaterThan(Date.now())
      }
      if (denial?.code === 'rate_limited') expect(denial.retryAfterSeconds).toBeGreaterThan(0)
    }
    return admitted
  }
  const windowStartMs = () => (Math.floor(Date.now() / WINDOW_MS) + 2) * WINDOW_MS

  test.each([-1, 0, 1, WINDOW_MS / 2])(
    'with clocks five seconds off, %i ms from a possible window end, admits exactly the limit [R17]',
    async (offMs) => {
      expect(await admittedAt(windowStartMs() + offMs, 'exact')).toBe(LIMIT)
    },
  )

  test('the upstash engine in the middle of a window admits exactly the limit [R17]', async () => {
    expect(await admittedAt(windowStartMs() + WINDOW_MS / 2, upstash())).toBe(LIMIT)
  })

  test.each([-1, 0, 1])(
    'the upstash engine, %i ms from a window end, admits at most the limit on each side [R17]',
    async (offMs) => {
      const admitted = await admittedAt(windowStartMs() + offMs, upstash())
      expect(admitted).toBeGreaterThanOrEqual(LIMIT)
      expect(admitted, NEVER).toBeLessThanOrEqual(2 * LIMIT)
    },
  )
})
