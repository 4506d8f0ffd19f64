import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { auditEventSchema } from '../../../src/audit/event-schema.ts'
import { auditQuerySchema } from '../../../src/audit/log.ts'
import { insertAuditEvents } from '../../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../../src/audit/sql/audit-events.ts'
import { type AuditStatement, d1Database } from '../../../src/audit/sql/d1/database.ts'
import { rowsOf, type TrailDatabase } from '../../../src/audit/sql/database.ts'
import { render, type Sql, sql } from '../../../src/audit/sql/statement.ts'
import { createD1Client } from '../../audit/d1-client.ts'
import { startD1Audit } from '../../audit/d1-harness.ts'
import { insertEarlierRows } from '../../audit/earlier-rows.ts'
import { anEvent } from '../../audit/event.ts'
import { prepare, runAll } from '../../audit/prepared.ts'
import { ROOT } from '../../harness/process.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { startGateway, type TestGateway } from './gateway.ts'

const PATIENCE = { timeout: 100_000, interval: 100 }
const CHANGE = { action: 'client.create', target: crypto.randomUUID() }
const migration = (name: string) => readFileSync(join(ROOT, 'migrations', name), 'utf8')

let redis: TestRedis
let harness: Awaited<ReturnType<typeof startD1Audit>>
beforeAll(async () => {
  redis = await startTestRedis()
  harness = await startD1Audit()
})
afterAll(async () => {
  await harness?.close()
  await redis?.close()
})

describe('changes by operators are audited [S66]', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway({ auditDb: harness.db })
  })
  afterAll(() => gateway.close())

  test('each change is one event, with the route pattern and what changed', async () => {
    const { id } = (
      await gateway.admin('POST', '/bans', { kind: 'subject', value: 'eve', seconds: 60 })
    ).body
    expect(gateway.events.at(-1)).toMatchObject({
      method: 'POST',
      route: '/-/admin/bans',
      decision: 'allow',
      status: 201,
      actor: { subject: 'olga' },
      change: { action: 'ban.create', target: id },
    })
    const before = gateway.events.length
    await gateway.admin('DELETE', `/bans/${id}`)
    expect(gateway.events.slice(before)).toMatchObject([
      { route: '/-/admin/bans/:id', status: 204, change: { action: 'ban.delete', target: id } },
    ])
    expect(auditEventSchema.safeParse(gateway.events.at(-1)).success).toBe(true)
  })

  test('a call that was refused, found nothing or only read is an event without a change', async () => {
    const id = crypto.randomUUID()
    for (const [method, path, body, as] of [
      ['DELETE', `/bans/${id}`, undefined, gateway.operator],
      ['POST', '/bans', { kind: 'nonsense' }, gateway.operator],
      ['POST', '/bans', { kind: 'subject', value: 'x', seconds: 1 }, await gateway.token()],
      ['GET', '/bans', undefined, gateway.operator],
    ] as const) {
      const before = gateway.events.length
      await gateway.admin(method, path, body, { as })
      const events = gateway.events.slice(before)
      expect(events).toHaveLength(1)
      expect(events[0]?.route).toMatch(/^\/-\/admin\/bans/)
      expect(events[0]?.change).toBeUndefined()
    }
  })

  test('GET /audit returns the rows of D1, filtered, newest first, page by page', async () => {
    await harness.migrate()
    const reason = `test_${crypto.randomUUID()}`
    const times = ['10', '11', '12'].map((hour) => `2026-11-20T${hour}:00:00.000Z`)
    const events = times.map((time) => anEvent({ time, reason, change: CHANGE }))
    const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
    await insertAuditEvents(harness.db, events, options)
    const query = (more: string) => gateway.admin('GET', `/audit?reason=${reason}&${more}`)
    const first = await query('limit=2&since=2026-11-20T10:00:00Z&until=2026-11-20T12:00:01Z')
    expect(first.status, first.text).toBe(200)
    expect(first.body.events).toHaveLength(2)
    expect(first.body.events[0].change).toEqual(CHANGE)
    const rest = await query(`limit=200&cursor=${first.body.cursor}`)
    expect(rest.body.cursor).toBeUndefined()
    const seen = [...first.body.events, ...rest.body.events].map(({ id }) => id)
    expect(seen).toEqual(events.map(({ id }) => id).reverse())
    expect((await query('decision=deny')).body.events).toEqual([])
    expect((await query('subject=alice&route=%2Forders%2F%3Aid')).body.events).toHaveLength(3)
    expect((await query('observed=banned')).body.events).toEqual([])
    for (const bad of [
      'since=yesterday',
      'decision=maybe',
      'observed=',
      'route=',
      'host=',
      'origin=',
      'key=x',
      'until=2026-13-01T00:00:00Z',
    ])
      expect((await query(bad)).status).toBe(422)
  })

  test('GET /audit finds requests that rules in observe mode would have refused [S66]', async () => {
    await harness.migrate()
    const reason = `test_${crypto.randomUUID()}`
    const observed = [
      ['rate_limited:standard', 'banned:address'],
      ['rate_limited_otherwise'],
      ['permission_missing:orders:read'],
      undefined,
    ]
    const events = observed.map((reasons) =>
      anEvent({ reason, ...(reasons && { observed: reasons }) }),
    )
    const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
    await insertAuditEvents(harness.db, events, options)
    const found = async (filter: string) => {
      const { body } = await gateway.admin('GET', `/audit?reason=${reason}&observed=${filter}`)
      return body.events.map((event: { observed: string[] }) => event.observed)
    }
    expect(await found('rate_limited')).toEqual([observed[0]])
    expect(await found('banned%3Aaddress')).toEqual([observed[0]])
    expect(await found('permission_missing')).toEqual([observed[2]])
    expect(await found('permission_missing%3Aorders')).toEqual([])
    expect(await found('banned%3Asubject')).toEqual([])
  })

  test('GET /audit finds the events of one request by its id, and no others [S66]', async () => {
    await harness.migrate()
    const startedMs = Date.parse('2026-11-20T09:00:00.000Z')
    const [requestId, another] = [uuidv7({ msecs: startedMs }), uuidv7({ msecs: startedMs })]
    const at = (afterMs: number, id: string, reason = 'ok') =>
      anEvent({ requestId: id, reason, time: new Date(startedMs + afterMs).toISOString() })
    const events = [
      at(0, requestId),
      at(60_000, requestId, 'stream_ended:token_revoked'),
      at(30_000, another),
    ]
    const options = { seal: createCheckpointSealer([]), nowMs: Date.now() }
    await insertAuditEvents(harness.db, events, options)
    const query = (id: string) => gateway.admin('GET', `/audit?requestId=${id}`)
    const ids = async (id: string) =>
      (await query(id)).body.events.map((event: { id: string }) => event.id)
    expect(await ids(requestId)).toEqual([events[1]?.id, events[0]?.id])
    expect(await ids(another.toUpperCase())).toEqual([events[2]?.id])
    expect(await ids(uuidv7({ msecs: startedMs }))).toEqual([])
    for (const bad of ['', 'x', crypto.randomUUID(), `${requestId}0`, `${requestId}%25`])
      expect((await query(bad)).status, bad).toBe(422)
  })

  test('the query by request id uses an index, in rows of before the blocks [S66]', async () => {
    const statements: Sql[] = []
    const db: TrailDatabase = {
      ...harness.db,
      run(all) {
        statements.push(...all)
        return harness.db.run(all)
      },
    }
    const requestId = uuidv7()
    await createAuditLog(db).query(auditQuerySchema.parse({ requestId }))
    const ofRows = statements.filter((one) =>
      render(one, harness.db.dialect).text.includes('audit_events'),
    )
    const [explained] = ofRows.map((one) => sql`EXPLAIN QUERY PLAN ${one}`)
    const results = await rowsOf<{ detail: string }>(harness.db, explained ?? sql``)
    expect(results.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^SEARCH audit_events USING INDEX audit_events_by_time .*time_ms[><]/),
    ])
  })

  test('the query by request id reads few rows, however many events its hour has', async () => {
    const start = Date.parse('2026-03-01T12:00:00.000Z')
    const at = (ms: number, different: Partial<AuditEvent> = {}) =>
      anEvent({ time: new Date(start + ms).toISOString(), requestId: uuidv7(), ...different })
    const requestId = uuidv7({ msecs: start })
    const wanted = [
      at(20, { requestId }),
      at(40_000, { requestId, reason: 'stream_ended:token_revoked', status: 0 }),
    ]
    const others = Array.from({ length: 900 }, (_, index) => at(100 + index * 4_000))
    const options = { seal: createCheckpointSealer([]), nowMs: start }
    for (let from = 0; from < others.length; from += 450)
      await insertEarlierRows(harness.db, others.slice(from, from + 450), options)
    await insertEarlierRows(harness.db, wanted, options)
    let rowsRead = 0
    const real = createD1Client(new URL('/sql', harness.url))
    const db = d1Database({
      ...real,
      async batch<Row>(all: AuditStatement[]) {
        const results = await real.batch<Row>(all)
        for (const { meta } of results)
          rowsRead += 'rows_read' in meta ? Number(meta.rows_read) : Number.NaN
        return results
      },
    })
    const { events } = await createAuditLog(db).query(auditQuerySchema.parse({ requestId }))
    expect(events).toEqual(wanted.toReversed())
    expect(rowsRead).toBeLessThan(50)
  })

  test('a failing or missing database is 503 [R20]', async () => {
    const failing = await startGateway({
      auditDb: d1Database({
        prepare: () => {
          throw new Error('D1_ERROR: secret-detail')
        },
        batch: () => Promise.reject(new Error('D1_ERROR: secret-detail')),
      }),
    })
    const none = await startGateway()
    try {
      for (const one of [failing, none]) {
        const reply = await one.admin('GET', '/audit')
        expect(reply.status).toBe(503)
        expect(reply.body.code).toBe('dependency_unavailable')
        expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
        expect(reply.text).not.toContain('secret-detail')
        expect(one.events.at(-1)).toMatchObject({ decision: 'error', route: '/-/admin/audit' })
      }
    } finally {
      await Promise.all([failing.close(), none.close()])
    }
  })
})

describe('a database created before the change columns existed', () => {
  beforeEach(async () => {
    await runAll(
      harness.db,
      [
        ...['events', 'erasures', 'blocks', 'usage'].map((name) => `audit_${name}`),
        'dead_letters',
        'd1_migrations',
      ].map((table) => prepare(harness.db, `DROP TABLE IF EXISTS ${table}`)),
    )
    for (const statement of migration('0001_audit_events.sql').split(';'))
      if (statement.trim() !== '') await prepare(harness.db, statement).run()
  })
  const log = () => createAuditLog(harness.db)
  const stored = async () =>
    (await log().query(auditQuerySchema.parse({ reason: 'of_the_queue' }))).events

  test('loses no event: the audit Worker adds the missing columns once and continues [R20]', async () => {
    const events = Array.from({ length: 30 }, (_, index) =>
      anEvent({ reason: 'of_the_queue', ...(index % 2 && { change: CHANGE }) }),
    )
    await Promise.all(events.map((event) => harness.enqueue('audit', [event])))
    await vi.waitFor(async () => expect(await stored()).toHaveLength(30), PATIENCE)
    const changes = (await stored()).flatMap(({ change }) => change ?? [])
    expect(changes).toEqual(Array.from({ length: 15 }, () => CHANGE))
    await harness.migrate()
    expect(await stored()).toHaveLength(30)
  })

  test('can be queried before the columns are added', async () => {
    const observed = auditQuerySchema.parse({ observed: 'banned' })
    expect(await log().query(observed)).toEqual({ events: [] })
    await prepare(
      harness.db,
      'INSERT INTO audit_events VALUES (?,1,?,?,NULL,NULL,NULL,NULL,NULL,?,NULL,?,?,200,?,?,?,NULL,NULL)',
    )
      .bind(crypto.randomUUID(), 'r', 't', 'GET', 'allow', 'of_the_queue', '[]', '{}', 'unknown')
      .run()
    const [event] = await stored()
    expect(auditEventSchema.parse(event)).not.toHaveProperty('change')
  })
})
