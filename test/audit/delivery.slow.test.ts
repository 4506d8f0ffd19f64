import { get } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { auditQuerySchema } from '../../src/audit/log.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { anEvent } from './event.ts'
import { type AuditHarness, startAuditHarness } from './harness.ts'
import { prepare, runAll } from './prepared.ts'
import { storedIds as idsIn, storedEvents } from './stored.ts'

/** Much longer than a queue needs for a delivery and two retries, after 5 and 15 s. */
const PATIENCE = { timeout: 100_000, interval: 200 }

let harness: AuditHarness
let origin: TestServer
let redis: TestRedis
let answerOrigin: () => void = () => {}
const originReached: (() => void)[] = []

beforeAll(async () => {
  origin = await startHttpServer((_, response) => {
    answerOrigin = () => response.end('late')
    originReached.shift()?.()
  })
  // No migration is applied, so that the Worker has to do it.
  redis = await startTestRedis()
  harness = await startAuditHarness({ originUrl: origin.url, redis })
})
afterAll(async () => {
  await harness?.close()
  await origin?.close()
  await redis?.close()
})

async function rows<Row>(sql: string): Promise<Row[]> {
  try {
    return (await prepare(harness.db, sql).all<Row>()).results
  } catch {
    return []
  }
}
/** None before the Worker has created the tables. */
const stored = (): Promise<readonly AuditEvent[]> => storedEvents(harness.db).catch(() => [])
const idsOf = async (reason: string) =>
  (await stored()).filter((event) => event.reason === reason).map(({ id }) => id)
const named = (reason: string, count: number) =>
  Array.from({ length: count }, () => anEvent({ reason }))

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

test('through a real queue into a real D1, each decision is exactly one event [S66]', async () => {
  const paths = Array.from({ length: 250 }, (_, index) => (index % 2 ? '/ok' : '/denied'))
  const statuses = await Promise.all(
    paths.map(async (path) => (await fetch(new URL(path, harness.url))).status),
  )
  expect(statuses.filter((status) => status === 403)).toHaveLength(125)
  await vi.waitFor(async () => {
    const decided = (await stored()).map(({ decision, status }) => `${decision} ${status}`)
    expect(decided.filter((one) => one === 'allow 200')).toHaveLength(125)
    expect(decided.filter((one) => one === 'deny 403')).toHaveLength(125)
    expect(new Set(await idsIn(harness.db)).size).toBe(250)
  }, PATIENCE)
  const { events } = await createAuditLog(harness.db).query(
    auditQuerySchema.parse({ decision: 'deny', limit: '1' }),
  )
  expect(auditEventSchema.parse(events[0])).toMatchObject({
    reason: 'permission_missing:orders:read',
    method: 'GET',
  })
})

test.concurrent('duplicated and reordered messages store each event once [R21]', async () => {
  const events = named('duplicated', 120)
  await harness.enqueue('audit', shuffled([...events, ...events, ...events.slice(0, 60)]))
  await harness.enqueue('audit', shuffled(events))
  await vi.waitFor(async () => expect(await idsOf('duplicated')).toHaveLength(120), PATIENCE)
  expect((await idsOf('duplicated')).sort()).toEqual(events.map(({ id }) => id).sort())
})

test.concurrent('a consumer that dies in the middle of a batch, twice, loses and duplicates nothing [R21]', async () => {
  const events = named('crashed', 1_000)
  await harness.enqueue('crash', events)
  await vi.waitFor(async () => expect(await idsOf('crashed')).toHaveLength(1_000), PATIENCE)
  expect((await idsOf('crashed')).sort()).toEqual(events.map(({ id }) => id).sort())
})

test.concurrent('without D1 nothing is acknowledged, and everything arrives afterwards [R21]', async () => {
  const events = named('outage', 40)
  await harness.enqueue('outage', events)
  await vi.waitFor(async () => expect(await idsOf('outage')).toHaveLength(40), PATIENCE)
})

test.concurrent('a malformed message becomes a dead letter, and no event is lost with it [R21]', async () => {
  const events = named('beside_poison', 20)
  const poison = [
    'not JSON {',
    'null',
    null,
    17,
    [],
    {},
    { ...anEvent(), id: 'not a uuid' },
    { ...anEvent(), token: 'an unknown key' },
    { ...anEvent(), decision: 'maybe' },
    JSON.stringify({ ...anEvent(), status: 'OK' }),
  ]
  await harness.enqueue('audit', shuffled([...events, ...poison]))
  await vi.waitFor(async () => expect(await idsOf('beside_poison')).toHaveLength(20), PATIENCE)
  await vi.waitFor(async () => {
    expect(await rows('SELECT body FROM dead_letters')).toHaveLength(poison.length)
  }, PATIENCE)
  const letters = await rows<{ body: string }>('SELECT body FROM dead_letters')
  expect(letters.map(({ body }) => body).sort()).toEqual(
    poison.map((body) => (typeof body === 'string' ? body : JSON.stringify(body))).sort(),
  )
  expect(await idsOf('beside_poison')).toHaveLength(20)
})

test('a request is audited exactly once if its client disconnects early [R22]', async () => {
  const called = new Promise<void>((resolve) => originReached.push(resolve))
  const request = get(new URL('/origin', harness.url))
  request.on('error', () => {})
  await called
  const closed = new Promise<void>((resolve) => request.on('close', () => resolve()))
  request.destroy()
  await closed
  answerOrigin()
  // No other response in this file has the status 203.
  await vi.waitFor(async () => {
    const found = (await stored()).filter(({ status }) => status === 203)
    expect(found).toMatchObject([{ decision: 'allow', reason: 'ok' }])
  }, PATIENCE)
})

test.each([
  ['hangs', 298],
  ['refuses', 299],
])(
  'while the queue %s, requests are answered, and their events arrive afterwards [R20]',
  async (mood, status) => {
    // A unique status marks the requests of this test.
    const sendOne = async () => (await fetch(new URL(`/ok/${status}`, harness.url))).status
    await fetch(new URL(`/mood/${mood}`, harness.url), { method: 'POST' })
    const statuses = await Promise.all(Array.from({ length: 130 }, sendOne))
    expect(statuses).toEqual(Array.from({ length: 130 }, () => status))
    await vi.waitFor(async () => {
      expect(await redis.direct.zcard(DEFAULT_KEYS.overflow)).toBeGreaterThanOrEqual(130)
    }, PATIENCE)
    await fetch(new URL('/mood/works', harness.url), { method: 'POST' })
    await vi.waitFor(async () => {
      // Further requests discover that the queue works again.
      await fetch(new URL('/ok', harness.url))
      const found = (await stored()).filter((event) => event.status === status)
      expect(found).toHaveLength(130)
      expect(new Set(found.map(({ requestId }) => requestId)).size).toBe(130)
      expect(await redis.direct.zcard(DEFAULT_KEYS.overflow)).toBe(0)
    }, PATIENCE)
    expect(await idsOf('audit_lost')).toEqual([])
  },
)

describe('the audit log', () => {
  const KEY = '01a1f920-fe19-7a05-8d2a-1dea6edacbff'
  const T0 = Date.parse('2020-01-01T00:00:00.000Z')
  const stored: AuditEvent[] = Array.from({ length: 12 }, (_, index) =>
    anEvent({
      // Two events share each millisecond, so that the id decides the order.
      time: new Date(T0 + Math.floor(index / 2)).toISOString(),
      reason: index % 3 === 0 ? 'token_rejected:exp' : index % 3 === 1 ? 'token_rejected_x' : 'ok',
      decision: index % 3 === 2 ? 'allow' : 'deny',
      route: index % 4 === 0 ? null : '/logged',
      actor: {
        ...anEvent().actor,
        subject: index % 2 ? "o'hara; --" : 'alice',
        ...(index % 6 === 5 && { key: KEY }),
      },
      ...(index % 3 === 0 && { host: '*.example.com', origin: index === 0 ? 'canary' : 'main' }),
      ...(index === 11 ? { lost: 3, requestId: '漢 😀 \u0001 \\ " \r\n' } : {}),
    }),
  )
  const newestFirst = [...stored].sort((a, b) =>
    a.time === b.time ? (a.id < b.id ? 1 : -1) : a.time < b.time ? 1 : -1,
  )
  const until = '2020-01-02T00:00:00Z'
  const queryLog = async (query: Record<string, string> = {}) =>
    (await createAuditLog(harness.db).query(auditQuerySchema.parse({ until, ...query }))).events

  beforeEach(async () => {
    await harness.migrate()
    await harness.enqueue('audit', stored)
    await vi.waitFor(async () => expect(await queryLog()).toHaveLength(12), PATIENCE)
  })

  test('returns exactly what was recorded, newest first', async () => {
    expect(await queryLog()).toEqual(newestFirst)
  })

  test('filters by subject, decision, route, reason and time, and by combinations', async () => {
    const by = (keep: (event: AuditEvent) => boolean) => newestFirst.filter(keep)
    expect(await queryLog({ subject: "o'hara; --" })).toEqual(
      by((event) => event.actor.subject === "o'hara; --"),
    )
    expect(await queryLog({ decision: 'allow' })).toEqual(by((event) => event.decision === 'allow'))
    expect(await queryLog({ route: '/logged' })).toEqual(by((event) => event.route === '/logged'))
    expect(await queryLog({ host: '*.example.com' })).toEqual(by(({ host }) => host !== undefined))
    expect(await queryLog({ host: 'a.example.com' })).toEqual([])
    expect(await queryLog({ origin: 'canary' })).toEqual(by(({ origin }) => origin === 'canary'))
    expect(await queryLog({ key: KEY.toUpperCase() })).toEqual(by(({ actor }) => actor.key === KEY))
    expect(await queryLog({ key: KEY })).toHaveLength(2)
    expect(await queryLog({ reason: 'token_rejected:exp' })).toHaveLength(4)
    expect(await queryLog({ reason: 'token_rejected' })).toEqual(
      by((event) => event.reason === 'token_rejected:exp'),
    )
    expect(await queryLog({ since: '2020-01-01T01:00:00.004+01:00' })).toEqual(
      newestFirst.slice(0, 4),
    )
    expect(await queryLog({ until: '2020-01-01T00:00:00.001Z' })).toEqual(newestFirst.slice(10))
    expect(await queryLog({ decision: 'deny', route: '/logged', subject: 'alice' })).toEqual(
      by(
        ({ decision, route, actor }) =>
          decision === 'deny' && route === '/logged' && actor.subject === 'alice',
      ),
    )
    expect(await queryLog({ subject: 'stranger' })).toEqual([])
  })

  test('pages through all events without duplicates or gaps', async () => {
    const seen: AuditEvent[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const page = await createAuditLog(harness.db).query(
        auditQuerySchema.parse({ until, limit: '5', ...(cursor && { cursor }) }),
      )
      seen.push(...page.events)
      cursor = page.cursor
      pages += 1
    } while (cursor !== undefined)
    expect(seen).toEqual(newestFirst)
    expect(pages).toBe(3)
  })

  test('deletes events older than the retention and all rows before them, and no others', async () => {
    const tables = [
      'audit_events',
      'audit_blocks',
      'audit_usage',
      'audit_heads',
      'audit_checkpoints',
      'audit_exports',
    ]
    const objects = (await harness.bucket.list()).objects.map(({ key }) => key)
    await harness.bucket.delete(objects)
    await runAll(
      harness.db,
      tables.map((table) => prepare(harness.db, `DELETE FROM ${table}`)),
    )
    const arrive = async (reason: string, time: string) => {
      await harness.enqueue('audit', [anEvent({ reason, time })])
      await vi.waitFor(async () => expect(await idsOf(reason)).toHaveLength(1), PATIENCE)
    }
    await harness.enqueue('audit', stored)
    await vi.waitFor(async () => expect(await queryLog()).toHaveLength(12), PATIENCE)
    await arrive('recent', new Date().toISOString())
    await arrive('late', '2020-01-01T00:00:00.000Z')
    // The cron exports the rows that it seals. It seals them a minute after the last checkpoint.
    await prepare(harness.db, 'UPDATE audit_heads SET sealed_ms = 0').run()
    await harness.runCron()
    const [first] = (await harness.bucket.list()).objects
    expect(first?.key).toMatch(/^audit\/0\/0{14}1-/)
    expect((await storedEvents(harness.db)).map(({ reason }) => reason)).toEqual(['recent', 'late'])
    expect((await harness.chainPage(0)).blocks?.[0]?.first_seq).toBe(13)
  })
})

test.each([
  { limit: '0' },
  { limit: '201' },
  { limit: 'ten' },
  { cursor: "1' OR 1=1 --" },
  { decision: 'maybe' },
  { since: 'yesterday' },
  { subject: '' },
  { order: 'asc' },
])('an invalid query is refused: %o', (query) => {
  expect(auditQuerySchema.safeParse(query).success).toBe(false)
})
