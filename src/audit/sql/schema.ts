/** The schema of the audit database, and the deadlines of its queries. */

import { Unavailable } from '../../errors.ts'
import { DeadlineExceeded, withDeadline } from '../../isolate/timers.ts'
import type { AuditDatabase } from './database.ts'
import { type Migration, SQLITE } from './dialect.ts'

const MISSING = /no such table|has no column named|no such column/i
const DUPLICATE_COLUMN = /duplicate column name/i

const says = (error: unknown, pattern: RegExp): boolean =>
  error instanceof Error && pattern.test(error.message)

/** Reports whether a database lacks a table or a column. */
export const isMissing = (error: unknown): boolean => says(error, MISSING)

/**
 * Runs `work`. If tables or columns are missing, applies the migrations in order and runs `work`
 * again. A migration that was applied before either has no effect or fails because its columns
 * exist. Each migration is recorded as applied, so that `wrangler d1 migrations apply` skips it.
 */
export async function withSchema<Value>(
  db: AuditDatabase,
  migrations: readonly Migration[],
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (!says(error, MISSING)) throw error
    const { migrations: own } = db.dialect ?? SQLITE
    for (const migration of own ?? migrations) await apply(db, migration)
    return work()
  }
}

/** Applies a migration completely or not at all. */
async function apply(db: AuditDatabase, { name, sql }: Migration): Promise<void> {
  const { lock, recordsMigrations } = db.dialect ?? SQLITE
  const statements = sql.split(';').filter((statement) => statement.trim() !== '')
  try {
    await within(
      db.batch([
        ...(lock === undefined ? [] : [db.prepare(lock)]),
        ...[...statements, recordsMigrations].map((statement) => db.prepare(statement)),
        db.prepare('INSERT INTO d1_migrations (name) VALUES (?) ON CONFLICT DO NOTHING').bind(name),
      ]),
    )
  } catch (error) {
    if (!says(error, DUPLICATE_COLUMN)) throw error
  }
}

/** D1 itself ends a statement after 30 s, so a later response is not expected. */
const D1_TIMEOUT_MS = 35_000

/** Settles as `work`, or rejects with `DeadlineExceeded`; D1 may still apply the statements. */
export const within = <Value>(work: Promise<Value>): Promise<Value> =>
  withDeadline(work, D1_TIMEOUT_MS)

/** With an index a page takes milliseconds; a filter without one may read the whole trail. */
export const QUERY_TIMEOUT_MS = 5_000

/**
 * Settles as `work` of the gateway does. Returns `whenMissing` if the database lacks a table or a
 * column: nothing is recorded there yet. Rejects with `Unavailable` for every other failure, and
 * after 5 s.
 */
export async function withinQuery<Value>(
  work: () => Promise<Value>,
  whenMissing?: Value,
): Promise<Value> {
  try {
    return await withDeadline(work(), QUERY_TIMEOUT_MS)
  } catch (cause) {
    if (whenMissing !== undefined && says(cause, MISSING)) return whenMissing
    const fault = cause instanceof DeadlineExceeded ? 'timeout' : 'refused'
    throw new Unavailable('audit_log', fault, { cause })
  }
}
