/** The audit database in D1, for a consumer. */
import type { ConsumerDatabase } from '../database.ts'
import type { RowInsert, StoringDialect } from '../dialect.ts'
import { inserting, SQLITE } from '../sqlite/storing-dialect.ts'
import { sql, text } from '../statement.ts'
import { type AuditDatabase, d1Database, runnerOf } from './database.ts'

/** D1 binds values of up to 1 MB, and an event with an operator's change may have 32 KB. */
const MAX_INSERT_CHARACTERS = 250_000

export const D1: StoringDialect = {
  ...SQLITE,
  // An invocation may make few queries, and each statement is one. So a statement parses many rows from JSON.
  insert: (insert) =>
    arraysOf(insert.rows.map((row) => JSON.stringify(row))).map((array) =>
      inserting(insert, sql`SELECT ${text(valuesOf(insert))} FROM json_each(${array}) WHERE true`),
    ),
}

const valuesOf = ({ columns }: RowInsert) =>
  columns.map((_, place) => `value ->> ${place}`).join(', ')

/** Joins rows, each a JSON array, into JSON arrays that are small enough to bind. */
function arraysOf(rows: readonly string[]): readonly string[] {
  const arrays: string[][] = []
  let characters = 0
  for (const row of rows) {
    characters += row.length
    const array = arrays.at(-1)
    if (array === undefined || characters > MAX_INSERT_CHARACTERS) {
      arrays.push([row])
      characters = row.length
    } else array.push(row)
  }
  return arrays.map((array) => `[${array.join(',')}]`)
}

/** Creates the database over a binding. Its calls reject with the errors of D1. */
export function d1ConsumerDatabase(binding: AuditDatabase): ConsumerDatabase {
  const run = runnerOf(binding, D1)
  return {
    ...d1Database(binding),
    dialect: D1,
    run,
    migrate: async (statements) => void (await run(statements)),
  }
}
