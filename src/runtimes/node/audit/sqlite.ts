/** The audit database in a file, with the SQLite of Node (22.13 or later). */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import type { Result } from '../../../audit/sql/database.ts'
import { sqliteFault } from '../../../audit/sql/sqlite/faults.ts'
import type { Rendered } from '../../../audit/sql/statement.ts'
import { createLruMap } from '../../../isolate/lru-map.ts'
import { createPrivately } from '../system/private-file.ts'
import { BUSY_TIMEOUT_MS, whenFree } from '../system/sqlite-busy.ts'

/** The name by which SQLite knows a database without a file. */
const IN_MEMORY = ':memory:'

/** The consumer has about twenty. Queries of operators have many forms. */
const MAX_PREPARED = 100

interface Prepared {
  readonly statement: StatementSync
  /** Has columns of results. */
  readonly isQuery: boolean
}

/**
 * Opens or creates the database, which only this user may read. Several processes of one machine may
 * open it at once. A committed transaction survives a crash of the process. It also survives a crash
 * of the machine, because each commit is synced.
 */
export function openSqlite(path: string) {
  if (path !== IN_MEMORY) createPrivately(path)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  try {
    whenFree(() => db.exec('PRAGMA journal_mode = WAL'))
    // Values that an erasure replaces leave nothing in free pages.
    db.exec('PRAGMA synchronous = FULL; PRAGMA secure_delete = ON')
  } catch (error) {
    db.close()
    throw error
  }
  const prepared = createLruMap<string, Prepared>({ max: MAX_PREPARED })

  function prepare(sql: string): Prepared {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = db.prepare(sql)
    statement.setReadBigInts(true)
    const made = { statement, isQuery: statement.columns().length > 0 }
    // Its columns would be those of before, if another process migrates the schema.
    if (!sql.includes('SELECT *')) prepared.set(sql, made)
    return made
  }

  function execute({ text, values: given }: Rendered): Result {
    const { statement, isQuery } = prepare(text)
    const values = given as SQLInputValue[]
    if (isQuery) return { rows: statement.all(...values).map(withNumbers), changes: 0 }
    return { rows: [], changes: Number(statement.run(...values).changes) }
  }

  function inTransaction(statements: readonly Rendered[], begin = 'BEGIN'): readonly Result[] {
    db.exec(begin)
    try {
      const results = statements.map(execute)
      db.exec('COMMIT')
      return results
    } catch (error) {
      // SQLite itself ends the transaction after some errors, such as a full disk.
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  return {
    /**
     * Runs the statements in one transaction. Blocks the thread. Throws a `DatabaseError` or the error of SQLite; then no
     * statement has an effect. Integers above 2^53 lose digits, as in D1.
     */
    run(statements: readonly Rendered[]): readonly Result[] {
      try {
        // One statement is a transaction of its own.
        return statements.length === 1 ? statements.map(execute) : inTransaction(statements)
      } catch (error) {
        throw sqliteFault(error)
      }
    },
    /**
     * As `run`, and waits first for a transaction of another process: a statement that finds its table only
     * reads, and a transaction that has read may not write after another one.
     */
    migrate(statements: readonly Rendered[]): void {
      try {
        inTransaction(statements, 'BEGIN IMMEDIATE')
      } catch (error) {
        throw sqliteFault(error)
      }
    },
    /** Empties the write-ahead log. Returns false if another connection reads it. */
    scrub: (): boolean => Number(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0,
    close: (): void => db.close(),
  }
}

function withNumbers(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (typeof value === 'bigint') row[name] = Number(value)
  return row
}
