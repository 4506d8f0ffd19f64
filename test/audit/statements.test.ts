/** The statements of a delivery to the audit Worker: an invocation may make 50 on the free plan of D1. */
import { v7 } from 'uuid'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { d1ConsumerDatabase } from '../../src/audit/sql/d1/consumer-database.ts'
import type { AuditDatabase, AuditStatement } from '../../src/audit/sql/d1/database.ts'
import type { ConsumerDatabase } from '../../src/audit/sql/database.ts'
import { MIGRATIONS } from '../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import type { Rendered } from '../../src/audit/sql/statement.ts'
import { type AuditMessage, auditWorker } from '../../src/runtimes/cloudflare/audit-worker.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { anEvent } from './event.ts'
import { prepare } from './prepared.ts'
import { storedIds } from './stored.ts'

const MAX_STATEMENTS = 50
const MAX_DELIVERIES = 30
const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
const START_MS = Date.parse('2026-11-20T12:00:00.000Z')

let connection: Awaited<ReturnType<typeof openDatabase>>
let binding: AuditDatabase
let db: ConsumerDatabase
let statements: number
/** Called before a batch that writes. */
let beforeWrite: () => Promise<unknown>
beforeEach(async () => {
  connection = await openDatabase('sqlite::memory:')
  binding = countingBinding(connection)
  db = d1ConsumerDatabase(binding)
  statements = 0
  beforeWrite = () => Promise.resolve()
  vi.spyOn(console, 'error').mockReturnValue()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await connection.close()
})

/** A binding as that of D1, over a database in memory. */
function countingBinding({ run }: typeof connection): AuditDatabase {
  const bound = new WeakMap<AuditStatement, Rendered>()
  function statementOf(text: string, values: readonly unknown[]): AuditStatement {
    const statement = { bind: (...given: unknown[]) => statementOf(text, given) }
    bound.set(statement, { text, values })
    return statement
  }
  return {
    prepare: (text) => statementOf(text, []),
    async batch<Row>(all: AuditStatement[]) {
      statements += all.length
      if (all.length > 1 && all.length < 7) await beforeWrite()
      const results = await run(all.flatMap((one) => bound.get(one) ?? []))
      return results.map(({ rows, changes }) => ({ results: rows as Row[], meta: { changes } }))
    },
  }
}

/** Delivers the events until none comes back. Returns the number of statements of each delivery. */
async function deliver(bodies: readonly string[], isColdStart = false): Promise<readonly number[]> {
  let worker = auditWorker()
  const env = { AUDIT_DB: binding }
  const counts: number[] = []
  let waiting = bodies.map((body) => ({ id: v7(), body, attempts: 1 }))
  while (waiting.length > 0 && counts.length < MAX_DELIVERIES) {
    if (isColdStart) worker = auditWorker()
    const again: typeof waiting = []
    const settled: string[] = []
    const messages = waiting.map(
      (one): AuditMessage => ({
        ...one,
        timestamp: new Date(START_MS),
        ack: () => void settled.push(one.id),
        retry() {
          settled.push(one.id)
          again.push({ ...one, attempts: one.attempts + 1 })
        },
      }),
    )
    statements = 0
    await worker.queue({ queue: 'portcullis-audit-dead-letters', messages }, env)
    counts.push(statements)
    expect(settled.toSorted()).toEqual(waiting.map(({ id }) => id).toSorted())
    waiting = again
  }
  expect(waiting).toEqual([])
  return counts
}

const migrate = () =>
  withSchema(db, MIGRATIONS, () => prepare(db, 'SELECT 1 FROM audit_counts').all())
const some = (count: number, stepMs: number, startMs = START_MS) =>
  Array.from({ length: count }, (_, at) =>
    anEvent({
      id: v7(),
      requestId: v7(),
      time: new Date(startMs + at * stepMs).toISOString(),
      actor: { ...anEvent().actor, key: v7() },
    }),
  )

test.each([
  ['a usual batch', some(100, 10), 1],
  ['a batch over the begin of an hour', some(100, 10, START_MS + HOUR_MS - 500), 1],
  ['two events 61 s apart', some(2, 61 * SECOND_MS), 1],
  ['eight stragglers', some(8, 2 * HOUR_MS), 2],
  ['a backlog with an event each 30 s', some(100, 30 * SECOND_MS), 4],
  ['a hundred stragglers', some(100, 2 * HOUR_MS), 15],
])(
  '%s is stored with few statements for each delivery, each event once',
  async (_what, events, deliveries) => {
    await migrate()
    const counts = await deliver(events.toReversed().map((event) => JSON.stringify(event)))
    expect(Math.max(...counts)).toBeLessThan(MAX_STATEMENTS)
    expect(counts.length).toBeLessThanOrEqual(deliveries)
    expect((await storedIds(db)).toSorted()).toEqual(events.map(({ id }) => id).toSorted())
  },
)

test('messages that are no events are kept, while events come back', async () => {
  await migrate()
  const events = some(40, 2 * HOUR_MS)
  const counts = await deliver(['not JSON {', ...events.map((event) => JSON.stringify(event))])
  expect(Math.max(...counts)).toBeLessThan(MAX_STATEMENTS)
  expect(await storedIds(db)).toHaveLength(40)
  const letters = await prepare(db, 'SELECT count(*) AS n FROM dead_letters').first()
  expect(letters).toEqual({ n: 1 })
})

test.each([
  ['an empty database', () => Promise.resolve()],
  [
    'a database before the counts',
    async () => {
      await migrate()
      await prepare(db, 'DROP TABLE audit_counts').run()
      await prepare(db, "DELETE FROM d1_migrations WHERE name = '0014_audit_counts.sql'").run()
    },
  ],
  [
    'a database that has lost a table',
    async () => {
      await migrate()
      await prepare(db, 'DROP TABLE audit_counts').run()
    },
  ],
  [
    'a database without records of migrations',
    async () => {
      await migrate()
      await prepare(db, 'DROP TABLE audit_counts').run()
      await prepare(db, 'DROP TABLE d1_migrations').run()
    },
  ],
])('%s gets its schema with few statements for each delivery', async (_what, begin) => {
  await begin()
  const events = some(3, 10)
  const bodies = ['not JSON {', ...events.map((event) => JSON.stringify(event))]
  const counts = await deliver(bodies, true)
  expect(Math.max(...counts)).toBeLessThan(MAX_STATEMENTS)
  // Messages come to the dead letter queue after five retries.
  expect(counts.length).toBeLessThanOrEqual(6)
  expect((await storedIds(db)).toSorted()).toEqual(events.map(({ id }) => id).toSorted())
  const { results } = await prepare(db, 'SELECT name FROM d1_migrations ORDER BY name').all()
  expect(results).toEqual(MIGRATIONS.map(({ name }) => ({ name })))
})

test('a delivery that other consumers always overtake ends below the bound', async () => {
  await migrate()
  await deliver(some(1, 1).map((event) => JSON.stringify(event)))
  let overtaken = 0
  beforeWrite = async () => {
    overtaken += 1
    if (overtaken > 6) return
    // Another consumer has moved the head, so this transaction fails.
    await connection.run([{ text: "UPDATE audit_heads SET hash = hash || 'x'", values: [] }])
  }
  const events = some(100, 10, START_MS + HOUR_MS - 500)
  const counts = await deliver(events.map((event) => JSON.stringify(event)))
  expect(overtaken).toBeGreaterThan(6)
  expect(Math.max(...counts)).toBeLessThan(MAX_STATEMENTS)
  expect(await storedIds(db)).toHaveLength(101)
})
