/** The audit database in a file, with the SQLite of Node (22.13 or later). */
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { LRUCache } from 'lru-cache'
import type { RowInsert, StatementResult } from '../../../audit/sql/database.ts'
import { createPrivately } from '../system/private-file.ts'
import type { BoundStatement } from './database.ts'

/** The name by which SQLite knows a database without a file. */
const IN_MEMORY = ':memory:'

/** How long a statement waits for a transaction of another process. */
const BUSY_TIMEOUT_MS = 5_000
/** The consumer has about twenty. Queries of operators have many forms. */
const MAX_PREPARED = 100

interface Prepared {
  readonly statement: StatementSync
  /** Has columns of results. */
  readonly isQuery: boolean
}

export interface Sqlite {
  /**
   * Runs the statements in one transaction. Blocks the thread. Throws the error of SQLite; then no
   * statement has an effect. Integers above 2^53 lose digits, as in D1.
   */
  run(statements: readonly BoundStatement[]): readonly StatementResult[]
  /** Empties the write-ahead log. Returns false if another connection reads it. */
  scrub(): boolean
  close(): void
}

/**
 * Opens or creates the database, which only this user may read. Several processes of one machine may
 * open it at once. A committed transaction survives a crash of the process. It also survives a crash
 * of the machine, because each commit is synced.
 */
export function openSqlite(path: string): Sqlite {
  if (path !== IN_MEMORY) createPrivately(path)
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
  // Values that an erasure replaces leave nothing in free pages.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON')
  const prepared = new LRUCache<string, Prepared>({ max: MAX_PREPARED })

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

  function execute(work: BoundStatement): StatementResult {
    if ('insert' in work) return insertRows(work.insert)
    const { statement, isQuery } = prepare(work.sql)
    const values = work.values as SQLInputValue[]
    if (isQuery) return { results: statement.all(...values).map(withNumbers), meta: { changes: 0 } }
    return { results: [], meta: { changes: Number(statement.run(...values).changes) } }
  }

  function insertRows({ table, columns, rows }: RowInsert): StatementResult {
    const places = columns.map(() => '?').join(', ')
    const { statement } = prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places})`)
    for (const row of rows) statement.run(...row)
    return { results: [], meta: { changes: rows.length } }
  }

  return {
    run(statements) {
      // One statement is a transaction of its own.
      if (statements.length === 1) return statements.map(execute)
      db.exec('BEGIN')
      try {
        const results = statements.map(execute)
        db.exec('COMMIT')
        return results
      } catch (error) {
        // SQLite itself ends the transaction after some errors, such as a full disk.
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    },
    scrub: () => Number(db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0,
    close: () => db.close(),
  }
}

function withNumbers(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (typeof value === 'bigint') row[name] = Number(value)
  return row
}
