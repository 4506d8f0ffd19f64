/** The audit database in D1, for queries. */
import { STREAMS } from '../../blocks/compression.ts'
import type { TrailDatabase } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import { SQLITE_QUERIES } from '../sqlite/dialect.ts'
import { sqliteFault } from '../sqlite/faults.ts'
import { render } from '../statement.ts'

/**
 * The part of a D1 binding that is used. The types of `@cloudflare/workers-types` would have to be
 * installed by every consumer of the package.
 */
export interface AuditDatabase {
  prepare(sql: string): AuditStatement
  /** Runs the statements in one transaction. */
  batch<Row = unknown>(statements: AuditStatement[]): Promise<StatementResult<Row>[]>
}

export interface AuditStatement {
  bind(...values: unknown[]): AuditStatement
}

export interface StatementResult<Row = unknown> {
  readonly results: Row[]
  readonly meta: { readonly changes: number }
}

/** Returns a function that runs statements. It rejects with the errors of D1. */
export const runnerOf =
  (binding: AuditDatabase, dialect: Dialect): TrailDatabase['run'] =>
  async (statements) => {
    const prepared = statements.map((statement) => {
      const { text, values } = render(statement, dialect)
      return binding.prepare(text).bind(...values)
    })
    try {
      const results = await binding.batch<Record<string, unknown>>(prepared)
      return results.map(({ results: rows, meta }) => ({
        rows: rows.map(withBytes),
        changes: meta.changes,
      }))
    } catch (error) {
      throw sqliteFault(error)
    }
  }

/** Creates the database over a binding. */
export const d1Database = (binding: AuditDatabase): TrailDatabase => ({
  dialect: SQLITE_QUERIES,
  compression: STREAMS,
  run: runnerOf(binding, SQLITE_QUERIES),
})

/** The database that a gateway is given: a binding of D1, or the database of a server on Node. */
export type GivenDatabase = AuditDatabase | TrailDatabase

/** Returns the port to the given database. Only features query it. */
export const trailOf = (given: GivenDatabase): TrailDatabase =>
  'prepare' in given ? d1Database(given) : given

/** D1 returns a BLOB as a list of numbers. */
function withBytes(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (Array.isArray(value)) row[name] = Uint8Array.from(value)
  return row
}
