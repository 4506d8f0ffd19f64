/** Statements that insert many rows. */
import type { AuditDatabase, AuditStatement, RowInsert } from './database.ts'

/** D1 binds values of up to 1 MB, and an event with an operator's change may have 32 KB. */
const MAX_INSERT_CHARACTERS = 250_000

/** Returns the statements that insert the rows, for a transaction of the caller. */
export function insertRows(db: AuditDatabase, insert: RowInsert): AuditStatement[] {
  if (insert.rows.length === 0) return []
  if (db.insertion !== undefined) return [db.insertion(insert)]
  const { table, columns } = insert
  // Has no ON CONFLICT: a place or an id that is taken must fail the transaction.
  const sql =
    `INSERT INTO ${table} (${columns.join(', ')}) ` +
    `SELECT ${columns.map((_, index) => `value ->> ${index}`).join(', ')} FROM json_each(?)`
  return arraysOf(insert.rows.map((row) => JSON.stringify(row))).map((array) =>
    db.prepare(sql).bind(array),
  )
}

/** Joins rows, each a JSON array, into JSON arrays that are small enough to bind. */
function arraysOf(rows: readonly string[]): readonly string[] {
  const arrays: string[][] = [[]]
  let characters = 0
  for (const row of rows) {
    characters += row.length
    if (characters > MAX_INSERT_CHARACTERS && characters > row.length) {
      arrays.push([])
      characters = row.length
    }
    arrays.at(-1)?.push(row)
  }
  return arrays.map((array) => `[${array.join(',')}]`)
}
