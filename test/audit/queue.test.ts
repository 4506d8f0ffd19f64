import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MAX_BATCH_BYTES } from '../../src/audit/batch.ts'
import { type AuditQueueOptions, createAuditQueue } from '../../src/audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../../src/audit/redis/overflow.ts'
import { newAuditTally } from '../../src/isolate/tally.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import { type LossyRedis, startLossyRedis } from './lossy-redis.ts'

const DRAIN_INTERVAL_MS = 30_000
const QUEUE_COOL_DOWN_MS = 5_000

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())
beforeEach(() => redis.direct.flushall())

type Mood = 'works' | 'refuses' | 'hangs' | 'throws at once'

/** More batches than any test here needs to drain its pages. */
const SETTLING = 4
type Isolate = Pick<ReturnType<typeof isolate>, 'transport' | 'state'>

/** Repairs the queue, and sends requests until nothing is left to drain. */
async function recover({ transport, state }: Isolate) {
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  for (let batch = 0; batch < SETTLING; batch += 1) await transport.send(events(1), 0)
}

/** Like {@link recover}, for a new isolate. */
async function settle({ transport, state }: Isolate) {
  for (let batch = 0; batch < SETTLING; batch += 1) {
    await transport.send(events(1), 0)
    state.nowMs += DRAIN_INTERVAL_MS
  }
}

/** Creates an isolate over a queue with a given behavior and a real Redis. */
function isolate({
  redisUrl = redis.url,
  maxEvents = 10_000,
  ...options
}: Partial<AuditQueueOptions> & { redisUrl?: string; maxEvents?: number } = {}) {
  const state = { mood: 'works' as Mood, nowMs: 1_000_000, attempts: 0 }
  const arrived: string[] = []
  const sizes: number[] = []
  const bytes: number[] = []
  const warnings: string[] = []
  const transport = createAuditQueue({
    queue: {
      sendBatch(messages) {
        state.attempts += 1
        if (state.mood === 'throws at once') throw new TypeError('internal error')
        if (state.mood === 'hangs') return new Promise(() => {})
        if (state.mood === 'refuses')
          return Promise.reject(new Error('Queue sendBatch failed: Too Many Requests'))
        arrived.push(...messages.map(({ body }) => body))
        sizes.push(messages.length)
        bytes.push(Buffer.byteLength(messages.map(({ body }) => body).join('')))
        return Promise.resolve({})
      },
    },
    overflow: createAuditOverflow({
      redis: createRedisRest({ url: redisUrl, token: redis.token, timeoutMs: 20_000 }),
      maxEvents,
    }),
    now: () => state.nowMs,
    sleep: () => Promise.resolve(),
    warn: (line) => warnings.push(line),
    queueTimeoutMs: 20,
    ...options,
  })
  return { state, arrived, sizes, bytes, warnings, transport }
}

const events = (count: number) => Array.from({ length: count }, () => JSON.stringify(anEvent()))
const stored = () => redis.direct.zrange(DEFAULT_KEYS.overflow, 0, -1)
const lostIn = (arrived: readonly string[]) =>
  arrived
    .map((event) => JSON.parse(event))
    .filter(({ reason }) => reason === 'audit_lost')
    .map(({ lost }): number => lost)
/** Like the consumer, which stores an event of the same id once. */
const lostOnce = (arrived: readonly string[]) => lostIn([...new Set(arrived)])
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

test('a working queue gets the batch as text, once, without a call to Redis', async () => {
  const { transport, arrived, state } = isolate()
  const batch = events(3)
  const before = redis.calls()
  await transport.send(batch, 0)
  expect(arrived).toEqual(batch)
  expect(state.attempts).toBe(1)
  expect(redis.calls()).toBe(before)
})

describe.each<Mood>(['refuses', 'hangs', 'throws at once'])('a queue that %s [R20]', (mood) => {
  test('is tried twice, and then every event is stored in Redis', async () => {
    const { transport, state, arrived } = isolate()
    state.mood = mood
    const batch = events(5)
    expect(transport.takesEvents()).toBe(true)
    await transport.send(batch, 0)
    expect(transport.takesEvents()).toBe(false)
    expect(state.attempts).toBe(2)
    expect(arrived).toEqual([])
    expect((await stored()).sort()).toEqual([...batch].sort())
  })

  test('is not tried for a while, and each batch goes to Redis in one call', async () => {
    const { transport, state } = isolate()
    state.mood = mood
    await transport.send(events(1), 0)
    const before = redis.calls()
    await transport.send(events(1), 0)
    await transport.send(events(1), 0)
    expect(state.attempts).toBe(2)
    expect(redis.calls() - before).toBe(2)
    expect(await stored()).toHaveLength(3)
  })

  test('gets everything from any isolate when it works again', async () => {
    const [failing, healthy] = [isolate(), isolate()]
    failing.state.mood = mood
    const batches = [events(100), events(100), events(30)]
    for (const batch of batches) await failing.transport.send(batch, 0)
    expect(await stored()).toHaveLength(230)
    // The healthy isolate checks after its interval, and with each batch while pages are full.
    const own = Array.from({ length: 5 }, () => events(1))
    for (const batch of own) {
      await healthy.transport.send(batch, 0)
      healthy.state.nowMs += DRAIN_INTERVAL_MS
    }
    expect(healthy.arrived.sort()).toEqual([...batches.flat(), ...own.flat()].sort())
    expect(await stored()).toEqual([])
  })
})

test('a recovered queue is probed after the cool-down, and receives the overflow at once [R20]', async () => {
  const { transport, state, arrived } = isolate()
  state.mood = 'refuses'
  const first = events(2)
  await transport.send(first, 0)
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  expect(transport.takesEvents()).toBe(true)
  const second = events(1)
  await transport.send(second, 0)
  expect(arrived.sort()).toEqual([...first, ...second].sort())
  expect(await stored()).toEqual([])
})

test('a drained event leaves Redis only after the queue has accepted it [R20]', async () => {
  const { transport, state } = isolate()
  state.mood = 'refuses'
  const batch = events(2)
  await transport.send(batch, 0)
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  let attempts = 0
  const dying = isolate({
    queue: {
      sendBatch: () => {
        attempts += 1
        return attempts === 1 ? Promise.resolve() : Promise.reject(new Error('unavailable again'))
      },
    },
  })
  await dying.transport.send(events(1), 0)
  dying.state.nowMs += DRAIN_INTERVAL_MS
  attempts = 0
  await dying.transport.send(events(1), 0)
  expect(attempts).toBeGreaterThan(1)
  expect((await stored()).sort()).toEqual([...batch].sort())
})

test('a drained batch stays within the limits of the queue [R20]', async () => {
  const { transport, state, sizes, bytes, arrived } = isolate()
  state.mood = 'refuses'
  const large = Array.from({ length: 60 }, () =>
    JSON.stringify(anEvent({ reason: 'r'.repeat(7_000) })),
  )
  await transport.send(large.slice(0, 30), 3)
  await transport.send(large.slice(30), 0)
  state.mood = 'works'
  for (let page = 0; page < 4; page += 1) {
    state.nowMs += QUEUE_COOL_DOWN_MS
    await transport.send(events(1), 0)
  }
  expect(Math.max(...sizes)).toBeLessThan(35)
  expect(Math.max(...bytes)).toBeLessThanOrEqual(MAX_BATCH_BYTES)
  expect(arrived).toHaveLength(64 + 1)
  expect(lostIn(arrived)).toEqual([3])
})

test('events dropped by the bound are reported with their exact number as an audit_lost event [R20]', async () => {
  const { transport, state, arrived } = isolate({ maxEvents: 10 })
  state.mood = 'refuses'
  await transport.send(events(8), 0)
  await transport.send(events(8), 0)
  await transport.send(events(1), 0)
  expect(await stored()).toHaveLength(10)
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  await transport.send(events(1), 0)
  expect(lostIn(arrived)).toEqual([7])
  expect(arrived).toHaveLength(10 + 1 + 1)
})

test('events lost without queue and Redis are counted, and reported after the recovery [R20]', async () => {
  const { transport, state, arrived, warnings } = isolate({ redisUrl: 'http://127.0.0.1:9' })
  state.mood = 'hangs'
  await transport.send(events(3), 2)
  await transport.send(events(4), 0)
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain('5 lost')
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  const next = events(1)
  await transport.send(next, 0)
  expect(arrived.slice(0, 1)).toEqual(next)
  expect(lostIn(arrived)).toEqual([9])
  await transport.send(events(1), 0)
  expect(lostIn(arrived)).toEqual([9])
})

test('a call to the overflow without an answer is repeated once, and nothing counts as lost [R20]', async () => {
  let pauses = 0
  const { transport, state, arrived } = isolate({
    sleep: async () => {
      pauses += 1
      // The first pause is between the two attempts at the queue.
      redis.setAnswering(pauses > 1)
    },
  })
  state.mood = 'refuses'
  const batch = events(3)
  await transport.send(batch, 0)
  expect((await stored()).sort()).toEqual([...batch].sort())
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  await transport.send(events(1), 0)
  expect(arrived).toHaveLength(4)
  expect(lostIn(arrived)).toEqual([])
})

test('a count that one isolate leaves in Redis is reported by another [R20]', async () => {
  const [failing, healthy] = [isolate({ maxEvents: 1 }), isolate()]
  failing.state.mood = 'refuses'
  await failing.transport.send(events(6), 0)
  await failing.transport.send(events(1), 0)
  await healthy.transport.send(events(1), 0)
  healthy.state.nowMs += DRAIN_INTERVAL_MS
  await healthy.transport.send(events(1), 0)
  // Five of the first batch, and one that the second batch left no room for.
  expect(lostIn(healthy.arrived)).toEqual([6])
})

describe('if replies of Redis are lost, the effects of the call stay counted [R20]:', () => {
  let lossy: LossyRedis
  beforeAll(async () => {
    lossy = await startLossyRedis(redis)
  })
  afterAll(() => lossy.close())
  const overLossy = (maxEvents?: number) =>
    isolate({ redisUrl: lossy.url, ...(maxEvents !== undefined && { maxEvents }) })

  /** Two attempts, each sent twice. */
  const ANSWERS = 4

  test.each([1, 2, 3])('%i replies to a batch, and the numbers are exact', async (count) => {
    const tally = newAuditTally()
    const { transport, state } = isolate({ redisUrl: lossy.url, maxEvents: 4, tally })
    state.mood = 'refuses'
    const [first, second] = [events(4), events(3)]
    await transport.send(first, 0)
    lossy.lose(count, DEFAULT_KEYS.overflow)
    await transport.send(second, 7)
    expect(lossy.left()).toBe(0)
    expect(tally).toEqual({ sent: 0, spilled: 7, lost: 3 + 7 })
    // The isolate dies here. Another one reports the loss.
    const other = isolate({ maxEvents: 4 })
    other.state.nowMs += DRAIN_INTERVAL_MS
    await settle(other)
    expect(lostIn(other.arrived)).toEqual([3 + 7])
    const came = [...first, ...second].filter((event) => other.arrived.includes(event))
    expect(came).toHaveLength(4)
  })

  test('all replies to a batch, and no number is too small', async () => {
    const { transport, state, arrived } = overLossy(4)
    state.mood = 'refuses'
    const [first, second] = [events(4), events(3)]
    await transport.send(first, 0)
    lossy.lose(ANSWERS, DEFAULT_KEYS.overflow)
    await transport.send(second, 7)
    expect(lossy.left()).toBe(0)
    await recover({ transport, state })
    expect(sum(lostIn(arrived))).toBeGreaterThanOrEqual(3 + 7)
    expect([...first, ...second].filter((event) => arrived.includes(event))).toHaveLength(4)
  })

  test.each([
    ['reading', 'SMEMBERS', 2],
    // Sent once: an event is created with a new id, or not at all.
    ['creating the audit_lost event', 'audit_lost', 1],
    ['removing sent entries', 'SREM', 2],
  ])('the replies to %s, and another isolate reports the same number', async (_, word, sent) => {
    const failing = isolate({ maxEvents: 4 })
    failing.state.mood = 'refuses'
    await failing.transport.send(events(9), 2)
    const dying = overLossy()
    await dying.transport.send(events(1), 0)
    lossy.lose(ANSWERS, word)
    dying.state.nowMs += DRAIN_INTERVAL_MS
    await dying.transport.send(events(1), 0)
    expect(ANSWERS - lossy.left()).toBe(sent)
    // The isolate never continues.
    const other = isolate()
    await settle(other)
    expect(lostOnce([...dying.arrived, ...other.arrived])).toEqual([7])
    expect(new Set([...dying.arrived, ...other.arrived]).size).toBe(2 + SETTLING + 4 + 1)
  })
})

test.each([
  ['refuses', () => Promise.reject(new Error('unavailable again'))],
  ['hangs', () => new Promise(() => {})],
])(
  'a count that was read while the queue %s is reported by another isolate [R20]',
  async (_, failure) => {
    const failing = isolate({ maxEvents: 4 })
    failing.state.mood = 'refuses'
    await failing.transport.send(events(9), 2)
    const dying = isolate({
      queue: {
        sendBatch: (messages) =>
          messages.some(({ body }) => body.includes('"own"')) ? Promise.resolve() : failure(),
      },
    })
    const own = () => [JSON.stringify(anEvent({ reason: 'own' }))]
    await dying.transport.send(own(), 0)
    dying.state.nowMs += DRAIN_INTERVAL_MS
    await dying.transport.send(own(), 0)
    const other = isolate()
    await settle(other)
    expect(lostIn(other.arrived)).toEqual([7])
    expect(await redis.direct.smembers(DEFAULT_KEYS.overflowLostEvent)).toEqual([])
  },
)

test.each([
  ['both live', false, false],
  ['the first dies', true, false],
  ['the second dies', false, true],
])('two isolates drain at once, %s, and the reported count is exact [R20]', async (_, ...dies) => {
  const failing = isolate({ maxEvents: 4 })
  failing.state.mood = 'refuses'
  await failing.transport.send(events(9), 2)
  const arrived: string[] = []
  const atQueue: (() => void)[] = []
  const reached: Promise<void>[] = []
  const go: (() => void)[] = []
  const draining = dies.map((isDying, at) => {
    reached.push(new Promise((resolve) => atQueue.push(resolve)))
    const mayGo = new Promise<void>((resolve) => go.push(resolve))
    const { transport, state } = isolate({
      queueTimeoutMs: 5_000,
      queue: {
        async sendBatch(messages) {
          if (!messages.some(({ body }) => body.includes('"own"'))) {
            atQueue[at]?.()
            await mayGo
            // Nothing of a dead isolate arrives, and nothing follows.
            if (isDying) await new Promise(() => {})
          }
          arrived.push(...messages.map(({ body }) => body))
        },
      },
    })
    return { transport, state }
  })
  const own = () => [JSON.stringify(anEvent({ reason: 'own' }))]
  const sending: Promise<void>[] = []
  for (const [at, { transport, state }] of draining.entries()) {
    await transport.send(own(), 0)
    state.nowMs += DRAIN_INTERVAL_MS
    sending.push(transport.send(own(), 0))
    await reached[at]
  }
  for (const open of go) open()
  await Promise.all(sending.filter((_, at) => !dies[at]))
  const other = isolate()
  await settle(other)
  expect(lostOnce([...arrived, ...other.arrived])).toEqual([7])
})

test('a count without stored events is reported [R20]', async () => {
  await redis.direct.incrby(DEFAULT_KEYS.overflowLost, 12)
  const { transport, state, arrived, sizes } = isolate()
  await transport.send(events(1), 0)
  state.nowMs += DRAIN_INTERVAL_MS
  await transport.send(events(1), 0)
  expect(lostIn(arrived)).toEqual([12])
  expect(sizes).toEqual([1, 1, 1])
  expect(await redis.direct.keys('pc:audit:lost*')).toEqual([])
})

test('the audit_lost event counts towards the maximum size of a batch [R20]', async () => {
  const { transport, state, arrived, sizes } = isolate({ maxEvents: 150 })
  state.mood = 'refuses'
  await transport.send(events(100), 5)
  await transport.send(events(100), 0)
  await recover({ transport, state })
  expect(sizes.slice(0, 4)).toEqual([1, 100, 1, 51])
  expect(lostIn(arrived)).toEqual([55])
})

test('without an overflow, events that the queue refuses are counted and reported', async () => {
  const arrived: string[] = []
  let works = false
  let nowMs = 1_000_000
  const transport = createAuditQueue({
    queue: {
      sendBatch: async (messages) => {
        if (!works) throw new Error('Storage Limit Exceeded')
        arrived.push(...messages.map(({ body }) => body))
      },
    },
    now: () => nowMs,
    sleep: () => Promise.resolve(),
    warn: () => {},
  })
  await transport.send(events(2), 0)
  works = true
  nowMs += QUEUE_COOL_DOWN_MS
  await transport.send(events(1), 0)
  expect(lostIn(arrived)).toEqual([2])
})

test('a patient transport keeps a batch until the queue works, and loses nothing [R20]', async () => {
  let pauses = 0
  const { transport, state, arrived, warnings } = isolate({
    redisUrl: 'http://127.0.0.1:9',
    keepsTrying: () => true,
    sleep: async () => {
      pauses += 1
      state.nowMs += 1_000
      if (pauses === 20) state.mood = 'works'
    },
  })
  state.mood = 'refuses'
  const batch = events(3)
  await transport.send(batch, 2)
  expect(arrived.slice(0, 3)).toEqual(batch)
  expect(lostIn(arrived)).toEqual([2])
  expect(warnings[0]).toContain('2 lost')
})

test('of the batches of a patient transport, only the first tries the stores [R20]', async () => {
  let pauses = 0
  const { transport, state, arrived } = isolate({
    redisUrl: 'http://127.0.0.1:9',
    keepsTrying: () => true,
    sleep: async () => {
      pauses += 1
      state.nowMs += 1_000
      if (pauses === 60) state.mood = 'works'
    },
  })
  state.mood = 'refuses'
  const batches = Array.from({ length: 50 }, () => events(2))
  await Promise.all(batches.map((batch) => transport.send(batch, 0)))
  expect(arrived.toSorted()).toEqual(batches.flat().toSorted())
  // Two attempts of each batch at first, two after each cool-down of five seconds, and its own.
  expect(state.attempts).toBeLessThan(200)
})

test('a transport that is no longer patient counts its batch as lost [R20]', async () => {
  let pauses = 0
  const { transport, state, arrived } = isolate({
    redisUrl: 'http://127.0.0.1:9',
    keepsTrying: () => pauses < 5,
    sleep: async () => {
      pauses += 1
      state.nowMs += 30_000
    },
  })
  state.mood = 'refuses'
  await Promise.all([transport.send(events(3), 0), transport.send(events(4), 0)])
  state.mood = 'works'
  state.nowMs += QUEUE_COOL_DOWN_MS
  await transport.send(events(1), 0)
  expect(lostIn(arrived)).toEqual([7])
})

test('operator messages contain no event and no error text', async () => {
  const { transport, state, warnings } = isolate()
  state.mood = 'refuses'
  await transport.send(events(1), 0)
  expect(warnings.join()).not.toMatch(/alice|Too Many Requests|issuer/)
})
