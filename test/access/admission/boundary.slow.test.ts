/**
 * A burst across the boundary of two windows, at several gateways, recorded by the clock of Redis.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { readableScript } from '../../harness/lua.ts'
import { NEVER } from '../../harness/never.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { limitOf } from './callers.ts'
import { leastBefore, type Outcome, worstOf } from './schedules.ts'

const LIMIT = 100
const WINDOW_SECONDS = 2
const WINDOW_MICROS = WINDOW_SECONDS * 1e6
const GATEWAYS = 4
const RECORD = 'record'
/** Twice the limit before and after each boundary, for three windows. */
const BURST = 2 * LIMIT
const BURSTS_MS = [1_900, 2_100, 3_900, 4_100, 5_900, 6_100]

/** The same script, with a record of when it ran and what it decided. */
const RECORDED_SCRIPT = (await readableScript('access/admission/redis/admit.lua')).replace(
  /return reply\n$/,
  `call('RPUSH', '${RECORD}', format('%.0f', now) .. ' ' .. tostring(holds)) return reply`,
)

describe.each(['auto', 'embedded'] as const)('over Redis (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())

  /** Creates the store of one gateway, with its own connections. */
  function recordedStore() {
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    const recorded: RedisConnection = {
      keys: DEFAULT_KEYS,
      send: ([command = []]) => rest.send([['EVAL', RECORDED_SCRIPT, ...command.slice(2)]]),
    }
    return createRedisAdmissionStore(recorded)
  }

  test('four gateways admit 100 in the worst 2 s, and refuse none of the first 94 [R15, R16]', async () => {
    expect(RECORDED_SCRIPT).toContain(RECORD)
    const stores = Array.from({ length: GATEWAYS }, recordedStore)
    const limit = limitOf({ limit: LIMIT, windowSeconds: WINDOW_SECONDS })
    const consult = (n: number) =>
      stores[n % GATEWAYS]?.consult({
        revocation: { cacheKey: '', token: undefined, revokedBefore: [], issuedAtSeconds: 0 },
        bans: [],
        limits: [limit],
        nowMs: Date.now(),
      })
    const startMs = Date.now()
    for (const atMs of BURSTS_MS) {
      await new Promise((done) => setTimeout(done, Math.max(0, startMs + atMs - Date.now())))
      await Promise.all(Array.from({ length: BURST }, (_, n) => consult(n)))
    }
    const outcomes = (await redis.direct.lrange(RECORD, 0, -1)).map((line): Outcome => {
      const [micros, holds] = line.split(' ')
      return { atMicros: Number(micros), admitted: holds === 'true' }
    })
    expect(outcomes.length).toBe(BURST * BURSTS_MS.length)
    const worst = worstOf(outcomes, WINDOW_MICROS, 1)
    expect(worst, NEVER).toBeLessThanOrEqual(LIMIT)
    expect(outcomes.some(({ admitted }) => !admitted)).toBe(true)
    expect(leastBefore(outcomes, WINDOW_MICROS, 1)).toBeGreaterThanOrEqual(95)
  })
})
