import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { createAuditQueue, OVERFLOW_TIMEOUT_MS } from '../../src/audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../../src/audit/redis/overflow.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import { type LossyRedis, startLossyRedis } from './lossy-redis.ts'

const DRAIN_INTERVAL_MS = 30_000
const QUEUE_COOL_DOWN_MS = 5_000

let redis: TestRedis
let lossy: LossyRedis
beforeAll(async () => {
  redis = await startTestRedis()
  lossy = await startLossyRedis(redis)
})
afterAll(async () => {
  await lossy?.close()
  await redis?.close()
})
beforeEach(async () => {
  await redis.direct.flushall()
  // A stall of the machine would lose a reply more than the test does.
  const wait = globalThis.setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms = 0) =>
    wait(run, ms === OVERFLOW_TIMEOUT_MS ? 60_000 : ms)) as typeof setTimeout)
})
afterEach(() => vi.restoreAllMocks())

const ISOLATES = 3
const STEPS = 25
const MAX_EVENTS = 10
/** A batch is stored in at most four calls: two attempts, each sent twice. */
const CALLS = 4

/**
 * Runs isolates in turn over one queue that refuses at random and a Redis that loses at most
 * `mostInARow` consecutive replies. Then everything works until nothing is left. Isolates that may
 * die hold no count of earlier lost events, because it would be lost with their memory.
 */
async function run(seed: number, mostInARow: number, mayDie: boolean) {
  const random = seededRandom(seed)
  let inARow = 0
  lossy.loseWhere(() => {
    inARow = random() < 0.5 && inARow < mostInARow ? inARow + 1 : 0
    return inARow > 0
  })
  const arrived = new Set<string>()
  const recorded: string[] = []
  let lostBefore = 0
  let nowMs = 1_000_000
  let takes = () => random() < 0.4
  const isolate = () =>
    createAuditQueue({
      queue: {
        async sendBatch(messages) {
          if (!takes()) throw new Error('Too Many Requests')
          for (const { body } of messages) arrived.add(body)
        },
      },
      overflow: createAuditOverflow({
        redis: createRedisRest({ url: lossy.url, token: redis.token, timeoutMs: 60_000 }),
        maxEvents: MAX_EVENTS,
        // The clocks differ, so that a new event can be the oldest in the overflow.
        now: () => nowMs - Math.floor(random() * 1_000),
      }),
      now: () => nowMs,
      sleep: () => Promise.resolve(),
      warn: () => {},
    })
  const isolates = Array.from({ length: ISOLATES }, isolate)
  async function send(at: number, count: number, lost: number) {
    const events = Array.from({ length: count }, () => JSON.stringify(anEvent()))
    recorded.push(...events)
    lostBefore += lost
    await isolates[at]?.send(events, lost)
  }

  for (let step = 0; step < STEPS; step += 1) {
    nowMs += QUEUE_COOL_DOWN_MS / 2
    for (let at = 0; at < ISOLATES; at += 1) {
      await send(at, 1 + Math.floor(random() * 6), !mayDie && random() < 0.2 ? 3 : 0)
      if (mayDie && random() < 0.3) isolates[at] = isolate()
    }
  }
  takes = () => true
  lossy.loseWhere(() => false)
  const keys = [DEFAULT_KEYS.overflow, DEFAULT_KEYS.overflowLost, DEFAULT_KEYS.overflowLostEvent]
  // The first round sends what the isolates hold in memory.
  for (let round = 0; round < 2 || (await redis.direct.exists(keys)) > 0; round += 1) {
    nowMs += DRAIN_INTERVAL_MS
    for (let at = 0; at < ISOLATES; at += 1) await send(at, 1, 0)
  }
  const counted = [...arrived]
    .map((event) => JSON.parse(event))
    .reduce((total, { lost = 0 }) => total + lost, 0)
  return { counted, lost: lostBefore + recorded.filter((event) => !arrived.has(event)).length }
}

const SEEDS = Array.from({ length: 4 }, (_, at) => at + 1)

test.each([
  ['live', false],
  ['die at random', true],
])(
  'isolates that %s report the exact number of lost events, whatever replies are lost [R20]',
  async (_, mayDie) => {
    for (const seed of SEEDS) {
      const { counted, lost } = await run(seed, CALLS - 1, mayDie)
      expect(lost, `seed ${seed}`).toBeGreaterThan(0)
      expect(counted, `seed ${seed}`).toBe(lost)
    }
  },
)

test('if even batches get no answer, the reported number is never too small [R20]', async () => {
  for (const seed of SEEDS) {
    const { counted, lost } = await run(seed, Number.POSITIVE_INFINITY, false)
    expect(counted, `seed ${seed}`).toBeGreaterThanOrEqual(lost)
  }
})
