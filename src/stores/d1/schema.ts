/** Tables that make themselves, for a database whose migrations nobody has applied. */

/** A file of `workers/migrations`. */
export interface Migration {
  /** Of the file. */
  readonly name: string
  /** Statements, each ended by `;`, with no `;` inside. */
  readonly sql: string
}

/** What a database without one of its tables, and one without a later column, are missing. */
export interface Schema {
  /** Does nothing where its tables exist. */
  readonly tables: Migration
  /** Adds columns to them; fails where they exist. */
  readonly columns: Migration
}

/** Where wrangler keeps which migrations were applied, and how it makes that table. */
const APPLIED =
  'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, ' +
  'name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)'

/** Whether D1 failed because a table is not there. */
export const isMissingTable = (error: unknown): boolean =>
  error instanceof Error && /no such table/i.test(error.message)

const isMissingColumn = (error: unknown): boolean =>
  error instanceof Error && /has no column named|no such column/i.test(error.message)

const isDuplicateColumn = (error: unknown): boolean =>
  error instanceof Error && /duplicate column name/i.test(error.message)

/**
 * Runs `work`; where tables or columns are missing, makes them and runs it again. What is made this
 * way counts as applied, so that `wrangler d1 migrations apply` does not try to make it again.
 */
export async function withSchema<Value>(
  db: D1Database,
  { tables, columns }: Schema,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (isMissingTable(error)) await apply(db, tables)
    else if (!isMissingColumn(error)) throw error
    // Tables of the first migration have none of the later columns.
    await apply(db, columns)
    return work()
  }
}

/** All of a migration or nothing; done by somebody else at the same moment is done. */
async function apply(db: D1Database, { name, sql }: Migration): Promise<void> {
  const statements = sql.split(';').filter((statement) => statement.trim() !== '')
  try {
    await db.batch([
      ...statements.map((statement) => db.prepare(statement)),
      db.prepare(APPLIED),
      db.prepare('INSERT OR IGNORE INTO d1_migrations (name) VALUES (?)').bind(name),
    ])
  } catch (error) {
    if (!isDuplicateColumn(error)) throw error
  }
}
