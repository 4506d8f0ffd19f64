/** SQL that inserts many rows with one query. */

/**
 * Returns SQL that inserts rows into `table` and skips rows with a key that exists. Its only
 * parameter is JSON: an array of rows, each an array of values in the order of `columns`. It is one
 * query because an invocation may make only 50 on the free plan. It is one parameter because a
 * query may bind only 100.
 */
export function insertStatement(table: string, columns: readonly string[]): string {
  const values = columns.map((_, index) => `value ->> ${index}`)
  // Without WHERE, SQLite parses ON CONFLICT as the ON of a join.
  return (
    `INSERT INTO ${table} (${columns.join(', ')}) ` +
    `SELECT ${values.join(', ')} FROM json_each(?) WHERE true ON CONFLICT DO NOTHING`
  )
}
