/** A file of `workers/migrations`. */
import { withDeadline } from '../../isolate/timers.ts'

export interface Migration {
  /** Name of the file. */
  readonly name: string
  /** Statements, each ended by `;`, with no `;` inside. */
  readonly sql: string
}

/** The table in which wrangler records applied migrations, created with the same statement. */
const APPLIED =
  'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, ' +
  'name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)'

/** Reports whether D1 failed because a table does not exist. */
export const isMissingTable = (error: unknown): boolean =>
  error instanceof Error && /no such table/i.test(error.message)

/** Reports whether D1 failed because a table or a column does not exist. */
export const isMissing = (error: unknown): boolean =>
  isMissingTable(error) ||
  (error instanceof Error && /has no column named|no such column/i.test(error.message))

const isDuplicateColumn = (error: unknown): boolean =>
  error instanceof Error && /duplicate column name/i.test(error.message)

/**
 * Runs `work`. If tables or columns are missing, applies the migrations in order and runs `work`
 * again. A migration that was applied before either has no effect or fails because its columns
 * exist. Each migration is recorded as applied, so that `wrangler d1 migrations apply` skips it.
 */
export async function withSchema<Value>(
  db: D1Database,
  migrations: readonly Migration[],
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (!isMissing(error)) throw error
    for (const migration of migrations) await apply(db, migration)
    return work()
  }
}

/**
 * Applies a migration completely or not at all. Succeeds if the columns of the migration exist
 * already.
 */
async function apply(db: D1Database, { name, sql }: Migration): Promise<void> {
  const statements = sql.split(';').filter((statement) => statement.trim() !== '')
  try {
    await within(
      db.batch([
        ...statements.map((statement) => db.prepare(statement)),
        db.prepare(APPLIED),
        db.prepare('INSERT OR IGNORE INTO d1_migrations (name) VALUES (?)').bind(name),
      ]),
    )
  } catch (error) {
    if (!isDuplicateColumn(error)) throw error
  }
}

/**
 * Timeout in milliseconds. D1 itself ends a statement after 30 s, so a later response is not
 * expected.
 */
export const D1_TIMEOUT_MS = 35_000

/**
 * Settles as `work` does, or rejects with `DeadlineExceeded`. After that, D1 may still apply the
 * statements.
 */
export const within = <Value>(work: Promise<Value>): Promise<Value> =>
  withDeadline(work, D1_TIMEOUT_MS)

/**
 * Returns SQL that inserts rows into `table` and skips rows with a key that exists. Its only
 * parameter is JSON: an array of rows, each an array of values in the order of `columns`. It is one
 * query because an invocation may make only 50 on the free plan. It is one parameter because a
 * query may bind only 100.
 */
export function insertStatement(table: string, columns: readonly string[]): string {
  const values = columns.map((_, index) => `value ->> ${index}`)
  // Without WHERE, SQLite parses ON CONFLICT as the ON of a join.
  return (
    `INSERT INTO ${table} (${columns.join(', ')}) ` +
    `SELECT ${values.join(', ')} FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`
  )
}
