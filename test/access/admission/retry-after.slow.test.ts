/** `Retry-After` and `RateLimit` of refusals, over a real Redis with a clock that the test sets. */

import fc from 'fast-check'
import { Hono } from 'hono'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import { admit } from '../../../src/middleware/admit.ts'
import { clientAddress } from '../../../src/middleware/client-address.ts'
import type { PrincipalVariables } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import type { PolicyLimit } from '../../../src/policy/policy.ts'
import type { RedisCommand, RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { KEY_LOCKING, scriptName } from '../../../src/redis/script.ts'
import { ADMIT_SCRIPT } from '../../../src/redis/scripts.generated.ts'
import { readableScript } from '../../harness/lua.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { SEED } from './schedules.ts'

const RUNS = { seed: SEED, numRuns: 25 }
const ADDRESS = '192.0.2.1'
const START_MS = 1_800_000_000_000

/** The script with the clock of the test in its last two arguments. */
const CLOCKED_SCRIPT = (await readableScript('access/admission/redis/admit.lua')).replace(
  "call('TIME')",
  '{ ARGV[#ARGV - 1], ARGV[#ARGV] }',
)

type Rule = Omit<PolicyLimit, 'name' | 'by' | 'onUnavailable'>

const exactRule = fc
  .record({
    limit: fc.integer({ min: 1, max: 20 }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    windowSeconds: fc.constantFrom(1, 2, 10, 60, 600),
    mode: fc.constantFrom('enforce', 'enforce', 'enforce', 'observe'),
  })
  .map(({ share, ...rule }): Rule => ({ ...rule, cost: 1 + Math.floor(share * (rule.limit - 1)) }))
const upstashRule = fc
  .record({
    limit: fc.integer({ min: 1, max: 20 }),
    windowSeconds: fc.constantFrom(1, 2, 10, 60, 600),
  })
  .map((rule): Rule => ({ ...rule, engine: upstash() }))

const gaps = fc.array(fc.constantFrom(0, 0, 0, 1, 70, 400, 1_500, 9_000), {
  minLength: 10,
  maxLength: 30,
})

describe('Retry-After of a refusal by limits', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
  })
  afterAll(() => redis.close())
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: START_MS })
  })
  afterEach(async () => {
    vi.useRealTimers()
    await redis.direct.flushall()
  })

  let serial = 0
  const named = (rules: readonly Rule[]): PolicyLimit[] =>
    rules.map((rule) => {
      serial += 1
      return { ...rule, name: `limit-${serial}`, by: 'address', onUnavailable: 'deny' }
    })

  /** Creates the app of one isolate, and counts the requests that reached its handler. */
  async function isolate(limits: readonly PolicyLimit[]) {
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    const name = await scriptName(KEY_LOCKING + ADMIT_SCRIPT)
    function clocked(command: RedisCommand): RedisCommand {
      if (command[1] !== name) return command
      const nowMs = Date.now()
      const clock = [Math.floor(nowMs / 1000), (nowMs % 1000) * 1000]
      return ['EVAL', CLOCKED_SCRIPT, ...command.slice(2), ...clock]
    }
    const changed: RedisConnection = {
      keys: DEFAULT_KEYS,
      send: (commands) => rest.send(commands.map(clocked)),
    }
    const store = createRedisAdmissionStore(changed)
    const admission = createAdmission({ store, now: Date.now })
    let reached = 0
    const app = new Hono<{ Variables: PrincipalVariables }>()
    app.onError(problemHandler())
    app.use(clientAddress())
    app.use(async (c, next) => {
      c.set('portcullis.principal', null)
      await next()
    })
    app.get('/', admit({ admission, limits }), (c) => {
      reached += 1
      return c.text('ok')
    })
    const send = () => app.request('/', { headers: { 'cf-connecting-ip': ADDRESS } })
    return { send, reached: () => reached }
  }

  /** Parses the headers of a refusal. */
  async function refusalOf(response: Response) {
    const [, name, left, seconds] =
      /^"([^"]+)";r=(\d+);t=(\d+)$/.exec(response.headers.get('RateLimit') ?? '') ?? []
    const { detail } = (await response.json()) as { detail: string }
    return {
      name,
      left: Number(left),
      seconds: Number(seconds),
      retryAfter: Number(response.headers.get('Retry-After')),
      detail,
    }
  }

  test('a limit with a cost is named if it refused, even if another limit has fewer units left', async () => {
    const limits = named([
      { limit: 10, windowSeconds: 10, cost: 4 },
      { limit: 3, windowSeconds: 600 },
    ])
    const { send, reached } = await isolate(limits)
    for (let sent = 0; sent < 2; sent++) expect((await send()).status).toBe(200)
    // The first limit has 2 of 10 units left, the second 1 of 3.
    const response = await send()
    expect(response.status).toBe(429)
    expect(await refusalOf(response)).toEqual({
      name: limits[0]?.name,
      left: 2,
      seconds: 10,
      retryAfter: 10,
      detail: `The limit "${limits[0]?.name}" is exhausted.`,
    })
    expect(reached()).toBe(2)
  })

  test('of several limits that refuse, the one with the longest wait is named, also from the cache', async () => {
    const limits = named([
      { limit: 1, windowSeconds: 10 },
      { limit: 1, windowSeconds: 600 },
      { limit: 1, windowSeconds: 60 },
    ])
    const { send, reached } = await isolate(limits)
    expect((await send()).status).toBe(200)
    for (let sent = 0; sent < 2; sent++) {
      const refusal = await refusalOf(await send())
      expect(refusal).toMatchObject({ name: limits[1]?.name, seconds: 600, retryAfter: 600 })
    }
    expect(reached()).toBe(1)
  })

  test('an admitted request reports the limit with the fewest requests left, by their cost', async () => {
    const limits = named([
      { limit: 10, windowSeconds: 60, cost: 5 },
      { limit: 4, windowSeconds: 600 },
    ])
    const { send } = await isolate(limits)
    expect((await send()).headers.get('RateLimit')).toBe(`"${limits[0]?.name}";r=5;t=60`)
  })

  async function holds(rules: readonly Rule[], steps: readonly number[]): Promise<number> {
    const limits = named(rules)
    const { send, reached } = await isolate(limits)
    let [served, refused] = [0, 0]
    for (const gap of steps) {
      vi.setSystemTime(Date.now() + gap)
      const response = await send()
      if (response.status === 200) {
        served += 1
        continue
      }
      expect(response.status).toBe(429)
      refused += 1
      const { name, seconds, retryAfter, detail } = await refusalOf(response)
      expect(detail).toBe(`The limit "${name}" is exhausted.`)
      expect(retryAfter).toBeGreaterThanOrEqual(seconds)
      expect(retryAfter).toBeGreaterThanOrEqual(1)
      const enforced = limits.filter(({ mode }) => mode !== 'observe').map((limit) => limit.name)
      expect(enforced).toContain(name)

      // After this wait the same limit does not refuse, whatever the request matches.
      vi.setSystemTime(Date.now() + retryAfter * 1000)
      const elsewhere = await isolate(limits)
      const again = await (refused % 2 === 0 ? send() : elsewhere.send())
      if (again.status === 200) {
        served += refused % 2 === 0 ? 1 : 0
        continue
      }
      expect(again.status).toBe(429)
      // Limits of the upstash engine count requests that another limit refuses, so they may refuse
      // next.
      expect(rules.some(({ engine }) => engine === upstash())).toBe(true)
      expect((await refusalOf(again)).name).not.toBe(name)
    }
    expect(reached()).toBe(served)
    return refused
  }

  test.each([
    ['exact', exactRule],
    ['upstash', upstashRule],
    ['of both engines', fc.oneof(exactRule, upstashRule)],
  ])(
    'a caller who waits for Retry-After is not refused by the same limit again: %s',
    async (_, rule) => {
      let refused = 0
      await fc.assert(
        fc.asyncProperty(fc.array(rule, { minLength: 1, maxLength: 4 }), gaps, async (...of) => {
          refused += await holds(...of)
        }),
        RUNS,
      )
      expect(refused).toBeGreaterThan(50)
    },
  )
})
