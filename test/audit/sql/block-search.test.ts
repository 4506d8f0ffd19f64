/** How much of the trail a query reads. */
import { v7 } from 'uuid'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { idsIn, searchColumnsOf } from '../../../src/audit/blocks/search-columns.ts'
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { auditQuerySchema, type TenantOfIssuers } from '../../../src/audit/log.ts'
import { insertAuditEvents } from '../../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../../src/audit/sql/audit-events.ts'
import { MIGRATIONS } from '../../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../../src/audit/sql/schema.ts'
import { createAuditSummary } from '../../../src/audit/sql/summary.ts'
import { Unavailable } from '../../../src/errors.ts'
import { consumerDatabase, type RunStatements } from '../../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../../src/runtimes/node/audit/open-database.ts'
import { observed } from '../../harness/own-calls.ts'
import { anEvent } from '../event.ts'
import { prepare, runAll } from '../prepared.ts'

const T0 = Date.parse('2026-01-01T00:00:00.000Z')
const seal = createCheckpointSealer([])
const file = await openDatabase('sqlite::memory:')
let [blocksRead, calls] = [0, 0]
const run: RunStatements = async (statements) => {
  calls += 1
  const all = await file.run(statements)
  for (const { rows } of all)
    blocksRead += rows.filter((row) => Object.hasOwn(row as object, 'events')).length
  return all
}
const db = consumerDatabase({ ...file, run })
const sql = (text: string) => prepare(db, text)
afterAll(() => file.close())

/** Returns the event of a request that began `tookMs` before. */
function at(index: number, tookMs = 40, different: Partial<AuditEvent> = {}): AuditEvent {
  const ms = T0 + index * 1_000
  return anEvent({
    id: v7({ msecs: ms, seq: index }),
    requestId: v7({ msecs: ms - tookMs }),
    time: new Date(ms).toISOString(),
    ...different,
  })
}
const by = (index: number, subject: string) =>
  at(index, 40, { actor: { ...anEvent().actor, subject } })

/** Appends blocks of `size` events. */
async function append(events: readonly AuditEvent[], size = 2) {
  await withSchema(db, MIGRATIONS, async () => {
    for (let from = 0; from === 0 || from < events.length; from += size)
      await insertAuditEvents(db, events.slice(from, from + size), { seal, nowMs: T0 })
  })
}

async function read(query: Readonly<Record<string, string>>, within?: TenantOfIssuers) {
  blocksRead = 0
  calls = 0
  const asked = auditQuerySchema.parse({ limit: '20', ...query })
  const page = await createAuditLog(db).query(asked, within)
  return { ...page, blocksRead, calls }
}

/** Makes filters say yes to everything, as they do to one value in a thousand. */
const answerAll = () => sql("UPDATE audit_blocks SET terms = X'ff'").run()

beforeEach(async () => {
  await append([])
  await runAll(
    db,
    ['blocks', 'usage', 'heads', 'checkpoints'].map((table) => sql(`DELETE FROM audit_${table}`)),
  )
})

describe('a query by request id', () => {
  test('reads only blocks with requests that had begun, whatever their filters say', async () => {
    const events = Array.from({ length: 100 }, (_, index) => at(index * 61))
    await append(events, 1)
    await answerAll()
    for (const index of [0, 51, 99]) {
      const requestId = events[index]?.requestId ?? ''
      const found = await read({ requestId })
      expect(found).toMatchObject({ events: [{ requestId }] })
      expect(found.blocksRead).toBeLessThanOrEqual(2)
    }
  })

  test('finds the event of its response and, an hour later, that of the end of its stream', async () => {
    const requestId = v7({ msecs: T0 })
    const begin = at(1, 0, { requestId })
    const end = at(3_500, 0, { requestId, reason: 'stream_ended:banned:subject' })
    const others = Array.from({ length: 100 }, (_, index) => at(10 + index * 34))
    await append([begin, ...others, end])
    const found = await read({ requestId })
    expect(found.events).toEqual([end, begin])
    expect(found.blocksRead).toBeLessThanOrEqual(3)
  })

  test('reads blocks of before, which do not say when their requests began', async () => {
    const events = Array.from({ length: 20 }, (_, index) => at(index))
    await append(events)
    await sql('UPDATE audit_blocks SET start_ms = NULL').run()
    const requestId = events[7]?.requestId ?? ''
    expect(await read({ requestId })).toMatchObject({ events: [{ requestId }] })
  })

  test('works on a database that no consumer has migrated yet', async () => {
    const events = Array.from({ length: 20 }, (_, index) => at(index))
    await append(events)
    await sql('DROP INDEX audit_blocks_by_start').run()
    await sql('ALTER TABLE audit_blocks DROP COLUMN start_ms').run()
    const requestId = events[7]?.requestId ?? ''
    expect(await read({ requestId })).toMatchObject({ events: [{ requestId }] })
    await sql("DELETE FROM d1_migrations WHERE name LIKE '0013%'").run()
  })
})

describe('a page', () => {
  test('of the newest events reads few blocks', async () => {
    await append(Array.from({ length: 200 }, (_, index) => at(index)))
    const found = await read({ limit: '3' })
    expect(found.events).toHaveLength(3)
    expect(found.blocksRead).toBeLessThanOrEqual(12)
    expect((await read({ limit: '1' })).blocksRead).toBe(2)
  })

  test('of a caller with one event in each block needs few calls', async () => {
    await append(
      Array.from({ length: 200 }, (_, index) => by(index, index % 2 === 0 ? 'ann' : 'bob')),
    )
    const found = await read({ subject: 'ann', limit: '50' })
    expect(found.events).toHaveLength(50)
    expect(found.blocksRead).toBeLessThanOrEqual(53)
    expect(found.calls).toBeLessThanOrEqual(4)
  })

  test('reads at most 50 full blocks, and the next page continues behind them', async () => {
    const events = Array.from({ length: 70 * 250 }, (_, index) =>
      by(index / 10, index === 7 ? 'rare' : 'other'),
    )
    await append(events, 250)
    await answerAll()
    const first = await read({ subject: 'rare' })
    expect(first).toMatchObject({ events: [], cursor: expect.any(String) })
    expect(first.blocksRead).toBeLessThanOrEqual(60)
    const next = await read({ subject: 'rare', cursor: first.cursor ?? '' })
    expect(next).toMatchObject({ events: [events[7]] })
    expect(next.blocksRead).toBeLessThanOrEqual(30)
  })
})

test('a summary counts no event twice while others are stored', async () => {
  await append(
    Array.from({ length: 30 }, (_, index) => by(index, 'alice')),
    1,
  )
  let isStored = false
  const storing: RunStatements = async (statements) => {
    const all = await run(statements)
    if (isStored || all.every(({ rows }) => rows.length === 0)) return all
    isStored = true
    await append([by(40, 'alice')])
    return all
  }
  const period = { sinceMs: T0, untilMs: T0 + 60_000 }
  const summaries = createAuditSummary(consumerDatabase({ ...file, run: storing }))
  expect(await summaries.summarize({ limit: 20, subject: 'alice' }, period)).toMatchObject({
    allow: 30,
  })
  expect(isStored).toBe(true)
})

/** Stores blocks with empty filters after the last one: each has one event and a minute. */
const appendUnread = (count: number) =>
  runAll(db, [
    sql(
      `INSERT INTO audit_blocks (first_seq, last_seq, min_ms, max_ms, previous_hash, hash, terms, ids, events)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
        SELECT 1000 + i, 1000 + i, ${T0} + i * 60000, ${T0} + i * 60000, '', '', X'00', X'', X'' FROM n`,
    ),
  ])

test('a page reads the filters of 8,000 blocks, and a summary those of 20,000', async () => {
  const event = by(0, 'alice')
  await append([event])
  await appendUnread(20_001)
  const subject = { subject: 'alice' }
  const first = await read(subject)
  expect(first).toMatchObject({ events: [], blocksRead: 0, cursor: expect.any(String) })
  const second = await read({ ...subject, cursor: first.cursor ?? '' })
  expect(second).toMatchObject({ events: [], cursor: expect.any(String) })
  expect((await read({ ...subject, cursor: second.cursor ?? '' })).events).toEqual([event])
  const period = { sinceMs: T0, untilMs: T0 + 30_000 * 60_000 }
  const summarize = () => createAuditSummary(db).summarize({ limit: 20, ...subject }, period)
  expect(await summarize()).toMatchObject({
    allow: 0,
    countedSince: new Date(T0 + 60_001).toISOString(),
  })
  await sql('DELETE FROM audit_blocks WHERE first_seq IN (1001, 1002)').run()
  expect(await summarize()).toMatchObject({ allow: 1, countedSince: new Date(T0).toISOString() })
  const keep = (count: number) =>
    sql(`DELETE FROM audit_blocks WHERE first_seq > 1002 + ${count}`).run()
  await keep(8_000)
  expect(await read(subject)).toMatchObject({ events: [], cursor: expect.any(String) })
  await keep(7_999)
  expect((await read(subject)).events).toEqual([event])
})

test('a page from a time that 8,000 blocks contain fails, and one of fewer does not', async () => {
  const event = by(0, 'alice')
  await append([event])
  await appendUnread(8_000)
  await sql(`UPDATE audit_blocks SET min_ms = ${T0}, max_ms = ${T0} + first_seq - 1000
    WHERE first_seq > 1000`).run()
  const query = { subject: 'alice', until: new Date(T0 + 1).toISOString() }
  await expect(read(query)).rejects.toThrow(Unavailable)
  await sql('DELETE FROM audit_blocks WHERE first_seq = 1001').run()
  expect((await read(query)).events).toEqual([event])
})

describe('an operator of a tenant', () => {
  const { actor } = anEvent()
  const within: TenantOfIssuers = { tenant: 'acme', issuers: [actor.issuer ?? ''] }
  const OF_TENANT = [0, 20, 39]
  /** One block of which three events are of the tenant: the first, one between others, and the last. */
  const events = Array.from({ length: 40 }, (_, index) =>
    at(index, 40, { actor: { ...actor, tenant: OF_TENANT.includes(index) ? 'acme' : 'other' } }),
  )
  beforeEach(() => append(events, 40))
  /** Each event has two texts. */
  const PARSED = 2 * OF_TENANT.length

  /** Returns the result of `work`, and how many texts it parses. */
  async function counted<Result>(work: () => Promise<Result>) {
    let parsed = 0
    const onCall = () => void parsed++
    const found = await observed([{ target: JSON, name: 'parse', onCall }], work)
    return { found, parsed }
  }

  test('reads a page without the events of other tenants', async () => {
    const { found, parsed } = await counted(() => read({}, within))
    expect(found.events).toEqual([events[39], events[20], events[0]])
    expect(parsed).toBe(PARSED)
  })

  test('reads a summary without the events of other tenants', async () => {
    const period = { sinceMs: T0, untilMs: T0 + 60_000 }
    const { found, parsed } = await counted(() =>
      createAuditSummary(db).summarize({ limit: 20 }, period, within),
    )
    expect(found).toMatchObject({ allow: 3 })
    expect(parsed).toBe(PARSED)
  })
})

test.each([
  ['0199A2F4-0000-7000-8000-0000000000ff', '0199a2f4-0000-7000-8000-0000000000ff'],
  // As `Number.parseInt` reads each two digits, so that digests of stored blocks stay valid.
  ['0199gg1g-g100-7000-8000-0000000000ff', '01990001-0000-7000-8000-0000000000ff'],
  ['0199', '01990000-0000-0000-0000-000000000000'],
  ['0199a2f4-0000-7000-8000-0000000000ffabcd', '0199a2f4-0000-7000-8000-0000000000ff'],
])('the id %s moves no other id of its block', (id, stored) => {
  const [first, last] = [v7(), v7()]
  const { ids } = searchColumnsOf([first, id, last].map((id) => anEvent({ id })))
  expect(idsIn(ids)).toEqual([first, stored, last])
})
