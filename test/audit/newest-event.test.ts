import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, test } from 'vitest'
import type { AuditDatabase, AuditStatement } from '../../src/audit/sql/d1/database.ts'
import { trailOf } from '../../src/audit/sql/d1/database.ts'
import { newestEventMs } from '../../src/audit/sql/d1/newest-event.ts'

const EVENTS = 'CREATE TABLE audit_events (time_ms INTEGER)'
const BLOCKS = 'CREATE TABLE audit_blocks (max_ms INTEGER)'
const opened: DatabaseSync[] = []
afterEach(() => {
  for (const database of opened.splice(0)) database.close()
})

/** A binding as that of D1, over a database in memory. */
function bindingOf(...statements: readonly string[]): AuditDatabase {
  const database = new DatabaseSync(':memory:')
  opened.push(database)
  for (const statement of statements) database.exec(statement)
  const texts = new WeakMap<AuditStatement, string>()
  return {
    prepare(text) {
      const statement = { bind: () => statement }
      texts.set(statement, text)
      return statement
    },
    async batch<Row>(all: AuditStatement[]) {
      return all.map((one) => ({
        results: database.prepare(texts.get(one) ?? '').all() as Row[],
        meta: { changes: 0 },
      }))
    },
  }
}

describe.each([
  { of: 'a binding of D1', given: (binding: AuditDatabase) => binding },
  { of: 'the database of a server', given: trailOf },
])('the newest event of $of', ({ given }) => {
  const newestIn = (...statements: readonly string[]) =>
    newestEventMs(given(bindingOf(...statements)))

  test('is the newest one of the rows and of the blocks', async () => {
    const rows = 'INSERT INTO audit_events VALUES (10), (30), (20)'
    expect(await newestIn(EVENTS, BLOCKS, rows)).toBe(30)
    expect(await newestIn(EVENTS, BLOCKS, rows, 'INSERT INTO audit_blocks VALUES (40)')).toBe(40)
    expect(await newestIn(EVENTS, BLOCKS, rows, 'INSERT INTO audit_blocks VALUES (25)')).toBe(30)
  })

  test('is that of the rows in a database without a table of blocks', async () => {
    expect(await newestIn(EVENTS, 'INSERT INTO audit_events VALUES (10)')).toBe(10)
  })

  test('is unknown without events, and if one of the tables cannot be read', async () => {
    expect(await newestIn(EVENTS, BLOCKS)).toBeUndefined()
    expect(await newestIn()).toBeUndefined()
    const unreadable = "CREATE VIEW audit_blocks AS SELECT json('{') AS max_ms"
    expect(await newestIn(EVENTS, 'INSERT INTO audit_events VALUES (10)', unreadable)).toBe(
      undefined,
    )
  })
})
