/** The audit database in a file, with the SQLite of Node (22.13 or later). */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { StatementResult } from '../../../audit/d1/database.ts'
import { createPrivately } from '../files/private-file.ts'
import type { BoundStatement } from './database.ts'

/** The name by which SQLite knows a database without a file. */
const IN_MEMORY = ':memory:'

/** How long a statement waits for a transaction of another process. */
const BUSY_TIMEOUT_MS = 5_000

export interface Sqlite {
  /**
   * Runs the statements in one transaction. Blocks the thread. Throws the error of SQLite; then no
   * statement has an effect. Integers above 2^53 lose digits, as in D1.
   */
  run(statements: readonly BoundStatement[]): readonly StatementResult[]
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
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const total = db.prepare('SELECT total_changes() AS count')
  const changesSoFar = () => Number(total.get()?.count)

  function execute({ sql, values }: BoundStatement): StatementResult {
    const before = changesSoFar()
    const statement = db.prepare(sql)
    statement.setReadBigInts(true)
    const results = statement.all(...(values as SQLInputValue[]))
    return { results: results.map(withNumbers), meta: { changes: changesSoFar() - before } }
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
    close: () => db.close(),
  }
}

function withNumbers(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (typeof value === 'bigint') row[name] = Number(value)
  return row
}
