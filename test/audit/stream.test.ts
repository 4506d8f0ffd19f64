/** The stream between gateways and the consumer of the audit trail on Node, over a real Redis. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAuditQueue } from '../../src/audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../../src/audit/redis/overflow.ts'
import { createStreamQueue, createStreamReader } from '../../src/audit/redis/stream.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { overResp, overRest } from '../harness/redis-protocols.ts'
import { anEvent } from './event.ts'

const STREAM = DEFAULT_KEYS.auditStream
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())
beforeEach(() => redis.direct.flushall())

const texts = (count: number) => Array.from({ length: count }, () => JSON.stringify(anEvent()))
const messagesOf = (events: readonly string[]) =>
  events.map((body) => ({ body, contentType: 'text' as const }))
const bodiesOf = (entries: readonly { readonly body: string }[]) => entries.map(({ body }) => body)
const idsOf = (entries: readonly { readonly id: string }[]) => entries.map(({ id }) => id)

describe.each([
  ['RESP', overResp],
  ['REST', overRest],
])('the stream over %s', (_, connect) => {
  let connection: RedisConnection
  beforeAll(() => {
    connection = connect(redis)
  })
  const append = (events: readonly string[], max?: number) =>
    createStreamQueue(connection, max).sendBatch(messagesOf(events))
  const reader = (name = 'one', claimAfterMs?: number) =>
    createStreamReader(connection, name, claimAfterMs)

  test('gives each event once, in order, and is empty when all are removed', async () => {
    const events = texts(250)
    await append(events)
    const { read, remove } = reader()
    const seen: string[] = []
    for (let page = await read(100); page.length > 0; page = await read(100)) {
      expect(page.length).toBeLessThanOrEqual(100)
      seen.push(...bodiesOf(page))
      await remove(idsOf(page))
    }
    expect(seen).toEqual(events)
    expect(await redis.direct.xlen(STREAM)).toBe(0)
    expect(await redis.direct.ttl(STREAM)).toBeGreaterThan(600_000)
  })

  test('gives what was not removed again after a restart of the consumer', async () => {
    const events = texts(3)
    await append(events)
    const [first] = await reader().read(100)
    await reader().remove([first?.id ?? ''])
    await append(texts(1))
    expect(bodiesOf(await reader().read(100))).toEqual(events.slice(1))
  })

  test('gives the entries of a consumer that died to another one, after the interval', async () => {
    const events = texts(5)
    await append(events)
    expect(await reader('one').read(100)).toHaveLength(5)
    expect(await reader('other').read(100)).toEqual([])
    expect(bodiesOf(await reader('other', 0).read(100))).toEqual(events)
  })

  test('gives no entry of a consumer that works to another one', async () => {
    await append(texts(4))
    expect(await reader('one').read(2)).toHaveLength(2)
    expect(await reader('other').read(100)).toHaveLength(2)
  })

  test('acknowledges entries that a consumer removed before it died', async () => {
    await append(texts(2))
    const entries = await reader().read(100)
    await redis.direct.xdel(STREAM, ...idsOf(entries))
    expect(await reader().read(100)).toEqual([])
    expect((await redis.direct.xpending(STREAM, 'audit'))[0]).toBe(0)
  })

  test('continues after Redis has lost all data', async () => {
    await append(texts(1))
    await reader().read(100)
    await redis.direct.flushall()
    expect(await reader().read(100)).toEqual([])
    const events = texts(2)
    await append(events)
    expect(bodiesOf(await reader().read(100))).toEqual(events)
  })

  test('gives an entry that no gateway wrote as text, and the events beside it', async () => {
    const events = texts(1)
    await append(events)
    await redis.direct.xadd(STREAM, '*', 'other', 'value', 'event', 'x')
    const bodies = bodiesOf(await reader().read(100))
    expect(bodies).toEqual([...events, '["other","value","event","x"]'])
  })

  test('accepts a batch completely or not at all, and never more than its bound [R38]', async () => {
    await append(texts(6), 10)
    await expect(append(texts(5), 10)).rejects.toThrow('is full')
    expect(await redis.direct.xlen(STREAM)).toBe(6)
    await append(texts(4), 10)
    expect(await redis.direct.xlen(STREAM)).toBe(10)
  })

  test('of more events than stream and overflow may have, each is stored or counted as lost [R38]', async () => {
    let nowMs = Date.now()
    const transport = createAuditQueue({
      queue: createStreamQueue(connection, 20),
      overflow: createAuditOverflow({ redis: connection, maxEvents: 10 }),
      now: () => nowMs,
      sleep: async () => {},
      warn: () => {},
    })
    const sent = Array.from({ length: 6 }, () => texts(8))
    for (const batch of sent) await transport.send(batch, 0)
    const { read, remove } = reader()
    const arrived = new Set<string>()
    for (let round = 0; round < 4; round += 1) {
      const page = await read(100)
      for (const body of bodiesOf(page)) arrived.add(body)
      await remove(idsOf(page))
      nowMs += 60_000
      await transport.send([], 0)
    }
    const events = [...arrived].map((text) => JSON.parse(text))
    const lost = events.filter(({ reason }) => reason === 'audit_lost')
    expect(lost).toMatchObject([{ lost: 48 - 16 - 10 }])
    expect(events).toHaveLength(16 + 10 + 1)
  })
})
