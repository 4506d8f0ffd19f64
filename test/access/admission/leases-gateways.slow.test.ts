/** Leases at whole gateways and at several concurrent isolates, in real time. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { newLocalTally } from '../../../src/access/admission/local-admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'
import { AUDIENCE, mint } from '../../harness/issuer.ts'
import { readableScript } from '../../harness/lua.ts'
import { NEVER } from '../../harness/never.ts'
import type { TestRedis } from '../../harness/redis.ts'
import { ADDRESS, limitOf, principal } from './callers.ts'
import { type Outcome, worstOf } from './schedules.ts'

const LIMIT = 100
const WINDOW_SECONDS = 2
const WINDOW_MICROS = WINDOW_SECONDS * 1e6
const ISOLATES = 4
const RECORD = 'record'
/** The clocks of isolates have milliseconds, rounded down. */
const CLOCK_MICROS = 1_000

let redis: TestRedis
let whole: TestGateway
beforeAll(async () => {
  whole = await startGateway({ audience: [AUDIENCE] })
  redis = whole.redis
})
afterAll(() => whole.close())

test('a gateway admits a frequent caller without a call, with RateLimit headers from its lease [R15]', async () => {
  const policy = definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {
      standard: {
        limit: 10_000,
        windowSeconds: 60,
        by: 'subject',
        onUnavailable: 'deny',
        lease: { max: 1_000, ttlMs: 10_000 },
      },
    },
    routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
    revocation: { maxStalenessMs: 60_000 },
  })
  const gateway = whole.client(policy)
  const token = await mint(whole.key, { claims: { roles: ['reader'] } })
  const send = () => gateway.send('/orders', ADDRESS, token)
  for (let n = 0; n < 50; n++) expect((await send()).status).toBe(200)
  const before = redis.calls()
  const left = []
  for (let n = 0; n < 200; n++) {
    const response = await send()
    expect(response.status).toBe(200)
    expect(response.headers.get('RateLimit-Policy')).toBe('"standard";q=10000;w=60')
    left.push(Number(/r=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1]))
  }
  // Usually two renewals, plus the calls that report metrics.
  expect(redis.calls() - before).toBeLessThanOrEqual(10)
  // Held units count as used.
  for (const [index, value] of left.entries()) expect(value).toBeLessThan(10_000 - 50 - index)
})

test('four isolates with leases admit 100 in the worst 2 s, whatever they hold [R16]', async () => {
  // The same script, with a record of its decisions on requests. A renewal has no cost.
  const recorded = (await readableScript('access/admission/redis/admit.lua')).replace(
    /return reply\n$/,
    `if ARGV[7] and ARGV[7] ~= '0' then
      call('RPUSH', '${RECORD}', format('%.0f', now) .. ' ' .. tostring(holds))
    end
    return reply`,
  )
  expect(recorded).toContain(RECORD)
  const limit = limitOf({
    limit: LIMIT,
    windowSeconds: WINDOW_SECONDS,
    lease: { max: LIMIT, ttlMs: 500 },
  })
  const who = principal()
  const outcomes: Outcome[] = []
  const isolates = Array.from({ length: ISOLATES }, () => {
    // As long as a test: a burst takes a slow machine a while.
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 60_000 })
    const recording: RedisConnection = {
      keys: DEFAULT_KEYS,
      send: (commands, options) => {
        const admission = commands.at(-1) ?? []
        const others = commands.slice(0, -1)
        return rest.send([...others, ['EVAL', recorded, ...admission.slice(2)]], options)
      },
    }
    const [store, tally] = [createRedisAdmissionStore(recording), newLocalTally()]
    const admission = createAdmission({ store, now: Date.now, maxStalenessMs: 1_000, local: tally })
    async function send(): Promise<void> {
      const { admitted: before } = tally
      const deciding = admission.admit({ principal: who, address: ADDRESS, limits: [limit] })
      // Admitted locally, without a call to Redis.
      if (tally.admitted > before) outcomes.push({ atMicros: Date.now() * 1000, admitted: true })
      await (await deciding).renewal?.()
    }
    return { send, tally }
  })
  const startMs = Date.now()
  // Two fifths of the limit at two isolates first, then bursts before and after each boundary.
  const at = [
    ...Array.from({ length: 75 }, (_, n) => [n * 50, n % 2] as const),
    ...[3_900, 4_100, 5_900, 6_100].flatMap((ms) =>
      Array.from({ length: 2 * LIMIT }, (_, n) => [ms, n % ISOLATES] as const),
    ),
  ]
  const requests = at.map(async ([ms, isolate]) => {
    await new Promise((done) => setTimeout(done, Math.max(0, startMs + ms - Date.now())))
    await isolates[isolate]?.send()
  })
  await Promise.all(requests)
  const local = outcomes.length
  expect(local).toBeGreaterThan(10)
  for (const line of await redis.direct.lrange(RECORD, 0, -1)) {
    const [micros, holds] = line.split(' ')
    outcomes.push({ atMicros: Number(micros), admitted: holds === 'true' })
  }
  outcomes.sort((one, other) => one.atMicros - other.atMicros)
  const worst = worstOf(outcomes, WINDOW_MICROS - CLOCK_MICROS, 1)
  expect(worst, NEVER).toBeLessThanOrEqual(LIMIT)
  expect(worst).toBeGreaterThan(LIMIT / 2)
})
