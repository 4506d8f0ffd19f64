import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuditQueue } from '../../../src/audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../../../src/audit/redis/overflow.ts'
import { newAuditTally, newTally } from '../../../src/isolate/tally.ts'
import { createCounters, seriesName } from '../../../src/observability/metrics/counters.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { anEvent } from '../../audit/event.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

const QUEUE_COOL_DOWN_MS = 5_000

describe('counters of other features', () => {
  test('are reported by their increase, and not reported without an increase', () => {
    const counters = createCounters()
    const tally = newTally()
    counters.addCache('tokens', tally)
    tally.hits = 5
    tally.misses = 2
    const hits = seriesName('portcullis_cache_requests_total', ['tokens', 'hit'])
    const misses = seriesName('portcullis_cache_requests_total', ['tokens', 'miss'])
    expect(counters.take()).toEqual(new Map(Object.entries({ [hits]: 5, [misses]: 2 })))
    tally.hits = 6
    expect(counters.take()).toEqual(new Map(Object.entries({ [hits]: 1 })))
    expect(counters.take()).toEqual(new Map())
  })
})

describe('counters of audit events', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis()
    await redis.direct.flushall()
  })
  afterAll(() => redis.close())

  const events = (count: number) => Array.from({ length: count }, () => JSON.stringify(anEvent()))

  test('distinguish events that were sent, stored as overflow and sent later, or lost', async () => {
    const tally = newAuditTally()
    const state = { isWell: true, nowMs: 1_000_000 }
    const { url, token } = redis
    const queue = createAuditQueue({
      queue: {
        sendBatch: () => (state.isWell ? Promise.resolve() : Promise.reject(new Error('full'))),
      },
      overflow: createAuditOverflow({
        redis: createRedisRest({ url, token, timeoutMs: 5_000 }),
        maxEvents: 4,
      }),
      tally,
      now: () => state.nowMs,
      sleep: () => Promise.resolve(),
      warn: () => undefined,
    })
    await queue.send(events(3), 0)
    expect(tally).toEqual({ sent: 3, spilled: 0, lost: 0 })
    state.isWell = false
    await queue.send(events(5), 2)
    // Two did not fit into the isolate, and one did not fit into Redis.
    expect(tally).toEqual({ sent: 3, spilled: 5, lost: 3 })
    redis.setAnswering(false)
    await queue.send(events(7), 0)
    expect(tally).toEqual({ sent: 3, spilled: 5, lost: 10 })
    redis.setAnswering(true)
    state.isWell = true
    state.nowMs += QUEUE_COOL_DOWN_MS
    await queue.send(events(1), 0)
    expect(tally).toEqual({ sent: 3 + 1 + 4, spilled: 5, lost: 10 })
  })
})
