/** Applies the migrations to a database that does not have the tables or columns yet. */
import { within } from './deadline.ts'

/** A file of `workers/migrations`. */
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
