/** Tables that make themselves, for a database whose migrations nobody has applied. */
import { within } from './deadline.ts'

/** A file of `workers/migrations`. */
export interface Migration {
  /** Of the file. */
  readonly name: string
  /** Statements, each ended by `;`, with no `;` inside. */
  readonly sql: string
}

/** Where wrangler keeps which migrations were applied, and how it makes that table. */
const APPLIED =
  'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, ' +
  'name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)'

/** Whether D1 failed because a table is not there. */
export const isMissingTable = (error: unknown): boolean =>
  error instanceof Error && /no such table/i.test(error.message)

/** Whether D1 failed because a table or a column is not there. */
export const isMissing = (error: unknown): boolean =>
  isMissingTable(error) ||
  (error instanceof Error && /has no column named|no such column/i.test(error.message))

const isDuplicateColumn = (error: unknown): boolean =>
  error instanceof Error && /duplicate column name/i.test(error.message)

/**
 * Runs `work`; where tables or columns are missing, applies the migrations in their order and runs
 * it again. Each of them either does nothing where it was applied, or fails because its columns are
 * there. What is made this way counts as applied, so that `wrangler d1 migrations apply` does not
 * try to make it again.
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

/** All of a migration or nothing; done by somebody else at the same moment is done. */
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
