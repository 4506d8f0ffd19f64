/** Summaries from the counts of hours: they are those of the events, whatever happens to the events. */
import { v7 } from 'uuid'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { countHours, hourOf } from '../../src/audit/hour-counts.ts'
import type { AuditQuery } from '../../src/audit/log.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import type { TrailDatabase } from '../../src/audit/sql/database.ts'
import { deleteBefore } from '../../src/audit/sql/retention.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { createAuditSummary } from '../../src/audit/sql/summary.ts'
import { KINDS, startDatabase } from './databases.ts'
import { anEvent } from './event.ts'
import { migrationsOf, prepare, runAll } from './prepared.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const START_MS = Date.parse('2026-11-20T12:00:00.000Z')
const REASONS = ['token_rejected:exp', 'token_rejected:sig', 'limit_exceeded:standard'] as const

/** Events of three hours, of which each third is refused. */
const events: readonly AuditEvent[] = Array.from({ length: 900 }, (_, at) => {
  const isRefused = at % 3 === 0
  return anEvent({
    id: v7(),
    time: new Date(START_MS + at * 12_000).toISOString(),
    requestId: v7(),
    route: `/route/${at % 7}`,
    decision: isRefused ? 'deny' : 'allow',
    reason: isRefused ? (REASONS[at % REASONS.length] ?? '') : 'ok',
    status: isRefused ? 403 : 200,
    durationsMs: { proxy: at % 100 },
  })
})
const HOURS = ['2026-11-20T12', '2026-11-20T13', '2026-11-20T14']
const COUNTS = 'SELECT hour, counts FROM audit_counts ORDER BY hour'
const whole = { sinceMs: START_MS, untilMs: START_MS + 3 * HOUR_MS }
const allOf = (query: Partial<AuditQuery> = {}): AuditQuery => ({ limit: 200, ...query })
const isRefused = ({ decision }: AuditEvent) => decision === 'deny'

/** Calls `each` with the number of rows of each result. */
const observed = (db: TrailDatabase, each: (rows: number) => void): TrailDatabase => ({
  ...db,
  async run(statements) {
    const results = await db.run(statements)
    for (const { rows } of results) each(rows.length)
    return results
  },
})

describe.each(KINDS)('a summary over %s', (kind) => {
  let database: Awaited<ReturnType<typeof startDatabase>>
  beforeAll(async () => {
    database = await startDatabase(kind)
    await store([])
  })
  afterAll(() => database?.close())
  beforeEach(async () => {
    for (const table of ['blocks', 'counts', 'heads', 'usage', 'checkpoints'])
      await prepare(database.db, `DELETE FROM audit_${table}`).run()
  })

  const store = (batch: readonly AuditEvent[]) =>
    withSchema(database.db, migrationsOf(database.db), () =>
      insertAuditEvents(database.db, batch, { seal: createCheckpointSealer([]), nowMs: START_MS }),
    )
  const summarize = (query: Partial<AuditQuery> = {}, period = whole) =>
    createAuditSummary(database.db).summarize(allOf(query), period)

  test('has the counts of the events, also after a repeated delivery [R42]', async () => {
    await store(events.slice(0, 500))
    await store(events.slice(400))
    const summary = await summarize()
    expect(summary).toMatchObject({ allow: 600, deny: 300, error: 0 })
    expect(summary.countedSince).toBe(summary.since)
    const buckets = summary.buckets.reduce((sum, { allow, deny }) => sum + allow + deny, 0)
    expect(buckets).toBe(900)
    expect(Object.fromEntries(summary.facets.reason.map((one) => [one.value, one.count]))).toEqual(
      Object.fromEntries(
        REASONS.map((reason) => [
          reason,
          events.filter((one) => one.reason === reason).length,
        ]).filter(([, count]) => count !== 0),
      ),
    )
    expect(summary.durationMs?.p50).toBeGreaterThanOrEqual(49)
    expect(summary.durationMs?.p50).toBeLessThanOrEqual(50 * 1.5)
  })

  test.each([
    ['a decision', { decision: 'deny' as const }, isRefused],
    [
      'the code of a reason',
      { reason: 'token_rejected' },
      (one: AuditEvent) => one.reason.startsWith('token_rejected'),
    ],
    ['a route', { route: '/route/3' }, ({ route }: AuditEvent) => route === '/route/3'],
    ['a status', { status: 403 }, isRefused],
  ])('counts only events with %s', async (_what, query, isWanted) => {
    await store(events)
    const { allow, deny } = await summarize(query)
    expect(allow + deny).toBe(events.filter(isWanted).length)
  })

  test('finds the hours of times in any order, and with an offset', () => {
    const times = [
      ['2026-11-20T12:59:59.999Z', '2026-11-20T12'],
      ['2026-11-20T13:00:00.000Z', '2026-11-20T13'],
      ['2026-11-20T13:00:00.000+01:00', '2026-11-20T12'],
      ['2026-11-20T12:59:00.000Z', '2026-11-20T12'],
      ['2026-11-21T12:59:00.000Z', '2026-11-21T12'],
    ] as const
    expect(times.map(([time]) => hourOf(time))).toEqual(times.map(([, hour]) => hour))
  })

  test('counts the minutes of a part of an hour', async () => {
    await store(events)
    const period = { sinceMs: START_MS + 90 * MINUTE_MS, untilMs: START_MS + 95 * MINUTE_MS }
    const { allow, deny } = await summarize({}, period)
    expect(allow + deny).toBe(25)
  })

  test('counts exactly once while several consumers store at the same time [R42]', async () => {
    await Promise.all([0, 1, 2].map((part) => store(events.filter((_, at) => at % 3 === part))))
    expect(await summarize()).toMatchObject({ allow: 600, deny: 300 })
  })

  test('counts events of a version without counts as long as they are few', async () => {
    await store(events.slice(0, 200))
    await prepare(database.db, 'DELETE FROM audit_counts').run()
    await store(events.slice(200, 400))
    const { allow, deny, countedSince, since } = await summarize()
    expect([allow + deny, countedSince]).toEqual([400, since])
  })

  test('forgets the hours of events at the end of their retention', async () => {
    await store(events)
    const nowMs = START_MS + 3 * HOUR_MS
    const options = { seal: createCheckpointSealer([]), nowMs }
    await deleteBefore(database.db, START_MS + 2 * HOUR_MS, options)
    const { results } = await prepare(database.db, 'SELECT hour FROM audit_counts').all()
    expect(results).toEqual([{ hour: '2026-11-20T14' }])
    const { allow, deny } = await summarize()
    expect(allow + deny).toBe(300)
  })

  test('the counts contain neither callers nor addresses', async () => {
    await store(events)
    const { results } = await prepare(database.db, 'SELECT counts FROM audit_counts').all()
    const text = JSON.stringify(results)
    for (const personal of ['alice', 'acme', '192.0.2.1', 'web'])
      expect(text).not.toContain(personal)
  })

  test.each([
    ['a member of a later version', '{"kinds":[],"minutes":{},"durations":{},"later":1}'],
    ['an empty text', ''],
    ['null', 'null'],
    ['a kind of another form', '{"kinds":[["deny",7,null,403]],"minutes":{},"durations":{}}'],
    ['a fraction as count', '{"kinds":[],"minutes":{"0":[0,1.5]},"durations":{}}'],
    ['no list of a minute', '{"kinds":[],"minutes":{"0":7},"durations":{}}'],
  ])('a row of counts with %s stops no event, and stays as it is', async (_what, odd) => {
    const { db } = database
    await store(events.slice(0, 450))
    const rows = async () =>
      (await prepare(db, COUNTS).all<{ hour: string; counts: string }>()).results
    await prepare(db, 'UPDATE audit_counts SET counts = ? WHERE hour = ?')
      .bind(odd, HOURS[1] ?? '')
      .run()
    await store(events.slice(450))
    const stored = await prepare(db, 'SELECT max(last_seq) AS n FROM audit_blocks').first()
    expect(stored).toEqual({ n: 900 })
    expect((await rows()).map(({ hour }) => hour)).toEqual(HOURS)
    expect((await rows())[1]?.counts).toBe(odd)
    const { allow, deny, countedSince } = await summarize()
    expect(countedSince <= `${HOURS[2]}:00:00.000Z`).toBe(true)
    expect(allow + deny).toBe(events.filter(({ time }) => time >= countedSince).length)
  })

  test('an hour with many different reasons stays small, and counts them together', async () => {
    // Of each minute, so many kinds as callers without a token can cause.
    const many = Array.from({ length: 60 * 400 }, (_, at) =>
      anEvent({
        time: new Date(START_MS + Math.floor(at / 400) * MINUTE_MS).toISOString(),
        reason: `code${at % 400}:detail`,
      }),
    )
    const [counts] = countHours(new Map(), many).values()
    expect(JSON.stringify(counts).length).toBeLessThan(50_000)
    await store(many.slice(0, 1_000).map((event) => ({ ...event, id: v7() })))
    expect((await summarize()).allow).toBe(1_000)
  })

  test('counts the newest 100 blocks for a filter, in three calls, and says since when', async () => {
    // Events of more than a minute apart are in blocks of their own.
    const timeOf = (at: number) => new Date(START_MS - at * 2 * MINUTE_MS).toISOString()
    await store(
      Array.from({ length: 103 }, (_, at) =>
        anEvent({ id: v7(), requestId: v7(), time: timeOf(102 - at) }),
      ),
    )
    const pages: number[] = []
    const summaries = createAuditSummary(observed(database.db, (rows) => void pages.push(rows)))
    const query = allOf({ subject: anEvent().actor.subject ?? '' })
    const { allow, countedSince } = await summaries.summarize(query, {
      sinceMs: START_MS - 24 * HOUR_MS,
      untilMs: START_MS + MINUTE_MS,
    })
    // The first call looks for blocks whose filters are too many to read.
    expect({ allow, pages }).toEqual({ allow: 100, pages: [0, 51, 51] })
    expect(Date.parse(countedSince)).toBe(Date.parse(timeOf(100)) + 1)
  })

  test('counts blocks with the newest 12,500 events for a filter, and says since when', async () => {
    // Blocks with 250 events of one time.
    const timeOf = (at: number) => new Date(START_MS - at * 2 * MINUTE_MS).toISOString()
    for (let at = 51; at >= 0; at -= 1)
      await store(
        Array.from({ length: 250 }, () => anEvent({ id: v7(), requestId: v7(), time: timeOf(at) })),
      )
    const { allow, countedSince } = await createAuditSummary(database.db).summarize(
      allOf({ subject: anEvent().actor.subject ?? '' }),
      { sinceMs: START_MS - 24 * HOUR_MS, untilMs: START_MS + MINUTE_MS },
    )
    expect(allow).toBe(12_500)
    expect(Date.parse(countedSince)).toBe(Date.parse(timeOf(50)) + 1)
  })

  test('reads the hours of a long period a week at a time', async () => {
    const { db } = database
    await store(events.slice(0, 1))
    const { results } = await prepare(db, COUNTS).all<{ hour: string; counts: string }>()
    const last = results[0]?.counts ?? ''
    const HOURS_OF_31_DAYS = 744
    const HOURS_OF_A_WEEK = 169
    const earlier = Array.from({ length: HOURS_OF_31_DAYS - 1 }, (_, at) =>
      new Date(START_MS - (at + 1) * HOUR_MS).toISOString().slice(0, HOURS[0]?.length),
    )
    const insert = prepare(
      db,
      'INSERT INTO audit_counts (hour, first_seq, counts) VALUES (?, 1, ?)',
    )
    await runAll(
      db,
      earlier.map((hour) => insert.bind(hour, last)),
    )
    const pages: number[] = []
    const counting = observed(db, (rows) => void pages.push(rows))
    const period = { sinceMs: START_MS - 743 * HOUR_MS, untilMs: START_MS + HOUR_MS }
    const { allow, deny } = await createAuditSummary(counting).summarize(allOf(), period)
    expect(allow + deny).toBe(HOURS_OF_31_DAYS)
    expect(Math.max(...pages)).toBe(HOURS_OF_A_WEEK)
    expect(pages.length).toBeLessThan(10)
  })
})
