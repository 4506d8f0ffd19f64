/** The schema of the audit database, and the deadlines of its queries. */

import { Unavailable } from '../../errors.ts'
import { DeadlineExceeded, withDeadline } from '../../isolate/timers.ts'
import { type ConsumerDatabase, isFault, rowsOf } from './database.ts'
import type { Migration } from './dialect.ts'
import { listed, type Sql, sql, text } from './statement.ts'

/** Reports whether a database lacks a table or a column. */
export const isMissing = (error: unknown): boolean => isFault(error, 'missing')

/** The schema changes in several calls, because one call makes a bounded number of statements. The next call continues. */
export class SchemaUnfinished extends Error {
  override readonly name = 'SchemaUnfinished'
}

const APPLIED = sql`SELECT name FROM d1_migrations`
const record = ({ name }: Migration): Sql =>
  sql`INSERT INTO d1_migrations (name) VALUES (${name}) ON CONFLICT DO NOTHING`

/**
 * Runs `work`. If tables or columns are missing, applies in order the migrations that are not recorded as applied, and runs
 * `work` again. Each one is recorded, so that `wrangler d1 migrations apply` skips it. If a table is missing although each
 * migration is recorded, applies all of them again: a migration that was applied before either has no effect or fails
 * because its columns exist.
 *
 * With `maxStatements`, applies at least one migration and stops at about this number of statements. Then rejects with
 * {@link SchemaUnfinished} instead of running `work` again, also if nothing is left to apply.
 */
export async function withSchema<Value>(
  db: ConsumerDatabase,
  migrations: readonly Migration[],
  work: () => Promise<Value>,
  maxStatements = Number.POSITIVE_INFINITY,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  let missing = await notApplied(db, migrations)
  if (missing.length === 0) {
    try {
      // Another consumer may have applied them meanwhile.
      return await work()
    } catch (error) {
      if (!isMissing(error)) throw error
    }
    await forget(db, migrations)
    missing = migrations
  }
  let left = maxStatements
  for (const migration of missing) {
    if (left !== maxStatements && statementsOf(migration).length + RECORDING > left) break
    left -= await apply(db, migration)
  }
  if (maxStatements === Number.POSITIVE_INFINITY) return work()
  throw new SchemaUnfinished('the schema of the audit trail is not complete yet')
}

/** Returns the migrations that are not recorded as applied. Creates the table of records if it is missing. */
async function notApplied(
  db: ConsumerDatabase,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  const find = () => within(rowsOf<{ readonly name: string }>(db, APPLIED))
  const applied = await find().catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (applied === undefined) {
    await within(db.migrate([db.dialect.recordsMigrations]))
    return migrations
  }
  const names = new Set(applied.map(({ name }) => name))
  return migrations.filter(({ name }) => !names.has(name))
}

async function forget(db: ConsumerDatabase, migrations: readonly Migration[]): Promise<void> {
  const names = listed(migrations.map(({ name }) => name))
  await within(db.run([sql`DELETE FROM d1_migrations WHERE name IN (${names})`]))
}

const statementsOf = ({ sql }: Migration): readonly string[] =>
  sql.split(';').filter((statement) => statement.trim() !== '')

/** Statements that record a migration: if its columns exist, in a second attempt. */
const RECORDING = 2

/** Applies a migration completely or not at all. Returns the number of statements. */
async function apply(db: ConsumerDatabase, migration: Migration): Promise<number> {
  const statements = statementsOf(migration)
  try {
    await within(db.migrate([...statements.map(text), record(migration)]))
    return statements.length + 1
  } catch (error) {
    if (!isFault(error, 'duplicate')) throw error
    await within(db.run([record(migration)]))
    return statements.length + RECORDING
  }
}

/** D1 itself ends a statement after 30 s, so a later response is not expected. */
const D1_TIMEOUT_MS = 35_000

/** Settles as `work`, or rejects with `DeadlineExceeded`; D1 may still apply the statements. */
export const within = <Value>(work: Promise<Value>): Promise<Value> =>
  withDeadline(work, D1_TIMEOUT_MS)

/** With an index a page takes milliseconds; a filter without one may read the whole trail. */
const QUERY_TIMEOUT_MS = 5_000

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
    if (whenMissing !== undefined && isMissing(cause)) return whenMissing
    const fault = cause instanceof DeadlineExceeded ? 'timeout' : 'refused'
    throw new Unavailable('audit_log', fault, { cause })
  }
}
