/** Inserting many rows as one query. */

/**
 * SQL that inserts rows into `table` and passes over those whose key is taken. Its one parameter is
 * JSON: an array of rows, each an array of values in the order of `columns`. One query, because an
 * invocation may make only 50 of them on the free plan, and one value, because a query may bind
 * only 100.
 */
export function insertStatement(table: string, columns: readonly string[]): string {
  const values = columns.map((_, index) => `value ->> ${index}`)
  // Without a WHERE, SQLite's grammar takes ON CONFLICT for a join's ON.
  return (
    `INSERT INTO ${table} (${columns.join(', ')}) ` +
    `SELECT ${values.join(', ')} FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`
  )
}
