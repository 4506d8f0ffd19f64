import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { auditEventSchema } from '../../src/audit/event.ts'
import { Unavailable } from '../../src/errors.ts'
import {
  createAuditSpill,
  SPILL_KEY,
  SPILL_LOST_KEY,
  SPILL_TTL_SECONDS,
} from '../../src/stores/upstash/audit-spill.ts'
import { createRedisRest } from '../../src/stores/upstash/rest.ts'
import { createSpillRedaction } from '../../src/stores/upstash/spill-redaction.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'

/** Both kinds, for what the embedded Redis does is what most people see first. */
for (const kind of ['auto', 'embedded'] as const) {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(kind)
  }, 30_000)
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  let nowMs = 1_000_000
  const spillOf = (maxEvents?: number) =>
    createAuditSpill({
      redis: createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 }),
      now: () => nowMs++,
      ...(maxEvents === undefined ? {} : { maxEvents }),
    })

  test(`${kind}: what is kept is read oldest first, and stays until it is forgotten`, async () => {
    const spill = spillOf()
    await spill.keep(['{"id":"z"}', '{"id":"y"}'], 0)
    await spill.keep(['{"id":"a"}'], 0)
    const first = await spill.peek(2)
    expect([...first.events].sort()).toEqual(['{"id":"y"}', '{"id":"z"}'])
    expect(await spill.peek(2)).toEqual(first)
    await spill.forget(first.events)
    expect(await spill.peek(2)).toEqual({ events: ['{"id":"a"}'], lost: 0 })
    await spill.forget(first.events)
    expect((await spill.peek(2)).events).toHaveLength(1)
  })

  test(`${kind}: keeping is one call and costs a bounded store, the oldest cut and counted`, async () => {
    const spill = spillOf(5)
    const before = redis.calls()
    expect(await spill.keep(['1', '2', '3', '4'], 0)).toBe(0)
    expect(redis.calls() - before).toBe(1)
    expect(await spill.keep(['5', '6', '7'], 0)).toBe(2)
    expect(await redis.direct.zcard(SPILL_KEY)).toBe(5)
    expect((await spill.peek(1)).events).toEqual(['3'])
    expect(await spill.keep(['8'], 0)).toBe(1)
  })

  test(`${kind}: keeping the same event twice keeps it once`, async () => {
    const spill = spillOf()
    await spill.keep(['same'], 0)
    await spill.keep(['same'], 0)
    expect((await spill.peek(9)).events).toEqual(['same'])
  })

  test(`${kind}: the number of lost events adds up, and is given out once`, async () => {
    const spill = spillOf()
    await spill.keep(['a'], 3)
    await spill.keep(['b'], 4)
    expect((await spill.peek(9)).lost).toBe(7)
    expect((await spill.peek(9)).lost).toBe(0)
  })

  test(`${kind}: everything expires after seven days`, async () => {
    await spillOf().keep(['a'], 1)
    for (const key of [SPILL_KEY, SPILL_LOST_KEY]) {
      expect(await redis.direct.ttl(key)).toBeGreaterThan(SPILL_TTL_SECONDS - 60)
      expect(await redis.direct.ttl(key)).toBeLessThanOrEqual(SPILL_TTL_SECONDS)
    }
  })

  test(`${kind}: an event keeps its bytes, whatever it holds`, async () => {
    const spill = spillOf()
    const event = JSON.stringify({ reason: '漢 😀 \u0001 " \\ \r\n', n: 1e21, s: '\ud800' })
    await spill.keep([event], 0)
    const { events } = await spill.peek(1)
    expect(events).toEqual([event])
    await spill.forget(events)
    expect((await spill.peek(1)).events).toEqual([])
  })

  test(`${kind}: S66: somebody is taken out of what is kept, wherever it stands, and events stay`, async () => {
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })
    const person = { issuer: 'https://issuer.example', subject: 'alice@home.example' }
    const actor = { ...anEvent().actor, ...person }
    const theirs = Array.from({ length: 120 }, () => anEvent({ actor }))
    const target = `standard:${person.subject}`
    const reset = anEvent({ change: { action: 'limit.reset', target } })
    const namesake = anEvent({ actor: { ...actor, issuer: 'https://other.example' } })
    const others = [...Array.from({ length: 130 }, () => anEvent()), namesake]
    const texts = [...theirs, ...others, reset].map((event) => JSON.stringify(event)).sort()
    const spill = spillOf()
    for (let from = 0; from < texts.length; from += 60)
      await spill.keep([...texts.slice(from, from + 60), `no event ${from}`], 0)
    await createSpillRedaction(rest).redact(person)
    const kept = (await spill.peek(999)).events
    expect(kept).toHaveLength(texts.length + 5)
    const events = kept
      .filter((text) => !text.startsWith('no event'))
      .map((text) => auditEventSchema.parse(JSON.parse(text)))
    expect(events.map(({ id }) => id).sort()).toEqual(
      [...theirs, ...others, reset].map(({ id }) => id).sort(),
    )
    const about = events.filter(({ actor: { subject } }) => subject === person.subject)
    expect(about).toEqual([namesake])
    expect(kept.filter((text) => text.includes(person.subject))).toHaveLength(1)
    expect(events.filter(({ address }) => address === 'erased')).toHaveLength(120)
    for (const event of others) expect(kept).toContain(JSON.stringify(event))
  })

  test(`${kind}: a key of another type is an outage, not an empty spill`, async () => {
    await redis.direct.set(SPILL_KEY, 'not a sorted set')
    await expect(spillOf().peek(1)).rejects.toBeInstanceOf(Unavailable)
    await expect(spillOf().keep(['a'], 0)).rejects.toBeInstanceOf(Unavailable)
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 })
    const redaction = createSpillRedaction(rest).redact({ issuer: 'i', subject: 's' })
    await expect(redaction).rejects.toBeInstanceOf(Unavailable)
  })
}
