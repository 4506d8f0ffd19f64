import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import type { AuditOverflow } from '../../src/audit/overflow.ts'
import {
  createAuditOverflow,
  createOverflowRedaction,
  OVERFLOW_TTL_SECONDS,
} from '../../src/audit/redis/overflow.ts'
import { Unavailable } from '../../src/errors.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'

const BATCH_TTL_SECONDS = 60

/** Both kinds, because the embedded Redis is what most users see first. */
for (const kind of ['auto', 'embedded'] as const) {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(kind)
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  let nowMs = 1_000_000
  const spillOf = (maxEvents?: number) =>
    createAuditOverflow({
      redis: createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 }),
      now: () => nowMs++,
      ...(maxEvents === undefined ? {} : { maxEvents }),
    })

  let batches = 0
  /** Stores events in a batch with a new id. */
  const keep = (overflow: AuditOverflow, events: readonly string[], lost = 0) =>
    overflow.keep(`batch-${batches++}`, events, lost)
  const reportedAs = (name: string) => (lost: number) => `${name}: ${lost}`
  const peek = (overflow: AuditOverflow, max = 9, name = 'lost') =>
    overflow.peek(max, reportedAs(name))
  const counted = async () => Number((await redis.direct.get(DEFAULT_KEYS.overflowLost)) ?? 0)

  test(`${kind}: stored events are read oldest first, and stay until they are removed`, async () => {
    const overflow = spillOf()
    await keep(overflow, ['{"id":"z"}', '{"id":"y"}'])
    await keep(overflow, ['{"id":"a"}'])
    const first = await peek(overflow, 2)
    expect([...first.events].sort()).toEqual(['{"id":"y"}', '{"id":"z"}'])
    expect(await peek(overflow, 2)).toEqual(first)
    await overflow.forget(first)
    expect(await peek(overflow, 2)).toEqual({ events: ['{"id":"a"}'], lostEvent: undefined })
    await overflow.forget(first)
    expect((await peek(overflow, 2)).events).toHaveLength(1)
  })

  test(`${kind}: a batch costs one call, in a bounded store that drops and counts the oldest events`, async () => {
    const overflow = spillOf(5)
    // Loads the script into Redis.
    await keep(overflow, ['0'])
    const before = redis.calls()
    expect(await keep(overflow, ['1', '2', '3', '4'])).toBe(0)
    expect(redis.calls() - before).toBe(1)
    expect(await counted()).toBe(0)
    expect(await keep(overflow, ['5', '6', '7'])).toBe(3)
    expect(await counted()).toBe(3)
    expect(await redis.direct.zcard(DEFAULT_KEYS.overflow)).toBe(5)
    expect((await peek(overflow, 1)).events).toEqual(['3'])
    expect(await keep(overflow, ['8'], 20)).toBe(1)
    expect(await counted()).toBe(21)
  })

  test(`${kind}: an event stored twice is kept once`, async () => {
    const overflow = spillOf()
    await keep(overflow, ['same'])
    await keep(overflow, ['same'])
    expect((await peek(overflow)).events).toEqual(['same'])
  })

  test(`${kind}: a batch stored again changes nothing, and has the same answer [R20]`, async () => {
    const overflow = spillOf(4)
    await keep(overflow, ['1', '2', '3'])
    const twice = ['4', '5', '6']
    for (let time = 0; time < 3; time += 1) expect(await overflow.keep('twice', twice, 7)).toBe(2)
    expect(await counted()).toBe(9)
    // The same holds after its own events were dropped or sent.
    await keep(overflow, ['7', '8'])
    await overflow.forget({ events: ['5'], lostEvent: undefined })
    expect(await counted()).toBe(11)
    const left = await redis.direct.zrange(DEFAULT_KEYS.overflow, 0, -1)
    expect(await overflow.keep('twice', twice, 7)).toBe(2)
    expect(await redis.direct.zrange(DEFAULT_KEYS.overflow, 0, -1)).toEqual(left)
    expect(await counted()).toBe(11)
  })

  test(`${kind}: a batch larger than the bound, stored again, is cut and counted once [R20]`, async () => {
    const overflow = spillOf(2)
    for (let time = 0; time < 2; time += 1)
      expect(await overflow.keep('large', ['1', '2', '3', '4', '5'], 0)).toBe(3)
    expect(await counted()).toBe(3)
  })

  test(`${kind}: the numbers of lost events add up to one event, which stays [R20]`, async () => {
    const overflow = spillOf()
    await keep(overflow, ['a'], 3)
    await keep(overflow, ['b'], 4)
    const expected = { events: ['a', 'b'], lostEvent: 'first: 7' }
    expect(await peek(overflow, 9, 'first')).toEqual(expected)
    expect(await counted()).toBe(0)
    expect(await peek(overflow, 9, 'second')).toEqual(expected)
    // Later losses are reported after that event.
    await keep(overflow, ['c'], 2)
    expect((await peek(overflow, 9, 'third')).lostEvent).toBe('first: 7')
    expect(await counted()).toBe(2)
    for (let time = 0; time < 2; time += 1) await overflow.forget(expected)
    const next = { events: ['c'], lostEvent: 'fourth: 2' }
    expect(await peek(overflow, 9, 'fourth')).toEqual(next)
    await overflow.forget(expected)
    expect(await peek(overflow, 9, 'fifth')).toEqual(next)
    await overflow.forget({ events: [], lostEvent: 'fourth: 2' })
    expect(await peek(overflow, 9, 'sixth')).toEqual({ events: ['c'], lostEvent: undefined })
  })

  test(`${kind}: one of several concurrent readers creates the audit_lost event [R20]`, async () => {
    await keep(spillOf(), ['a'], 6)
    const readers = Array.from({ length: 8 }, (_, at) => peek(spillOf(), 9, `reader ${at}`))
    const seen = (await Promise.all(readers)).flatMap(({ lostEvent }) => lostEvent ?? [])
    const there = await redis.direct.smembers(DEFAULT_KEYS.overflowLostEvent)
    expect(there).toHaveLength(1)
    expect(there[0]).toMatch(/: 6$/)
    // The second reader sees the same event now or later, and never another.
    expect(seen.length).toBeGreaterThan(0)
    expect([...new Set(seen)]).toEqual(there)
    expect(await counted()).toBe(0)
  })

  test.each([
    ['after its event was sent, and smaller by now', true, 4, undefined, 4],
    ['after its event was sent, and larger by now', true, 8, 'slow: 6', 2],
    ['while its event is stored, and larger by now', false, 8, undefined, 8],
  ])(
    `${kind}: a count that other readers have read, %s, loses nothing [R20]`,
    async (_, hasGone, grown, expected, left) => {
      let arrive = () => {}
      const atScript = new Promise<void>((resolve) => {
        arrive = resolve
      })
      let go = () => {}
      const mayGo = new Promise<void>((resolve) => {
        go = resolve
      })
      const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
      const slow = createAuditOverflow({
        redis: {
          keys: DEFAULT_KEYS,
          async send(commands, options) {
            if (commands[0]?.[0] === 'EVALSHA') {
              arrive()
              await mayGo
            }
            return rest.send(commands, options)
          },
        },
      })
      const fast = spillOf()
      await keep(fast, ['a'], 6)
      const reading = peek(slow, 9, 'slow')
      await atScript
      const taken = await peek(fast, 9, 'fast')
      expect(taken.lostEvent).toBe('fast: 6')
      if (hasGone) await fast.forget(taken)
      await keep(fast, ['b'], grown)
      go()
      expect((await reading).lostEvent).toBe(expected)
      expect(await counted()).toBe(left)
    },
  )

  test(`${kind}: entries in the format of earlier gateways are read`, async () => {
    await redis.direct.zadd(DEFAULT_KEYS.overflow, 5, 'old', 6, 'older')
    await redis.direct.incrby(DEFAULT_KEYS.overflowLost, 12)
    await keep(spillOf(), ['new'], 1)
    expect(await peek(spillOf())).toEqual({
      events: ['old', 'older', 'new'],
      lostEvent: 'lost: 13',
    })
  })

  test(`${kind}: everything expires after seven days, and batch ids after a minute`, async () => {
    const overflow = spillOf()
    await overflow.keep('one', ['a'], 1)
    await peek(overflow)
    await redis.direct.expire(DEFAULT_KEYS.overflowLostEvent, 100)
    await overflow.keep('two', ['b'], 1)
    await redis.direct.expire(DEFAULT_KEYS.overflowLost, 100)
    // The count of lost events lives as long as events that are stored later.
    await overflow.keep('three', ['c'], 0)
    for (const key of [
      DEFAULT_KEYS.overflow,
      DEFAULT_KEYS.overflowLost,
      DEFAULT_KEYS.overflowLostEvent,
    ]) {
      expect(await redis.direct.ttl(key)).toBeGreaterThan(OVERFLOW_TTL_SECONDS - 60)
      expect(await redis.direct.ttl(key)).toBeLessThanOrEqual(OVERFLOW_TTL_SECONDS)
    }
    for (const id of ['one', 'two', 'three'])
      expect(await redis.direct.ttl(`pc:audit:batch:${id}`)).toBeLessThanOrEqual(BATCH_TTL_SECONDS)
    expect(await redis.direct.dbsize()).toBe(6)
  })

  test(`${kind}: an event keeps its bytes, whatever characters it holds`, async () => {
    const overflow = spillOf()
    const event = JSON.stringify({ reason: '漢 😀 \u0001 " \\ \r\n', n: 1e21, s: '\ud800' })
    await keep(overflow, [event])
    const kept = await peek(overflow)
    expect(kept.events).toEqual([event])
    await overflow.forget(kept)
    expect((await peek(overflow)).events).toEqual([])
  })

  test(`${kind}: an erasure removes a subject everywhere in stored events, and the events stay [S66]`, async () => {
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    const person = { issuer: 'https://issuer.example', subject: 'alice@home.example' }
    const actor = { ...anEvent().actor, ...person }
    const theirs = Array.from({ length: 120 }, () => anEvent({ actor }))
    const target = `standard:${person.subject}`
    const reset = anEvent({ change: { action: 'limit.reset', target } })
    const namesake = anEvent({ actor: { ...actor, issuer: 'https://other.example' } })
    const others = [...Array.from({ length: 130 }, () => anEvent()), namesake]
    const texts = [...theirs, ...others, reset].map((event) => JSON.stringify(event)).sort()
    const overflow = spillOf()
    for (let from = 0; from < texts.length; from += 60)
      await keep(overflow, [...texts.slice(from, from + 60), `no event ${from}`])
    await createOverflowRedaction(rest).redact(person)
    const kept = (await peek(overflow, 999)).events
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

  test(`${kind}: a key of another type is an outage, not an empty overflow`, async () => {
    await redis.direct.set(DEFAULT_KEYS.overflow, 'not a sorted set')
    await expect(peek(spillOf())).rejects.toBeInstanceOf(Unavailable)
    await expect(keep(spillOf(), ['a'], 3)).rejects.toBeInstanceOf(Unavailable)
    expect(await counted()).toBe(0)
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    const redaction = createOverflowRedaction(rest).redact({ issuer: 'i', subject: 's' })
    await expect(redaction).rejects.toBeInstanceOf(Unavailable)
  })

  test.each([
    ['is not a number', () => redis.direct.set(DEFAULT_KEYS.overflowLost, 'many')],
    ['is of another type', () => redis.direct.lpush(DEFAULT_KEYS.overflowLost, '1')],
  ])(
    `${kind}: a count that %s is an outage, and nothing is stored without it`,
    async (_, write) => {
      await write()
      await expect(keep(spillOf(), ['a'])).rejects.toBeInstanceOf(Unavailable)
      expect(await redis.direct.exists(DEFAULT_KEYS.overflow)).toBe(0)
      await expect(peek(spillOf())).rejects.toBeInstanceOf(Unavailable)
    },
  )
}
