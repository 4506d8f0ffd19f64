/** What a consumer of the audit trail writes on SQLite. */
import type { RowInsert, StoringDialect } from '../dialect.ts'
import { joined, listed, type Sql, sql, text } from '../statement.ts'
import { SQLITE_QUERIES } from './dialect.ts'

export const SQLITE: StoringDialect = {
  ...SQLITE_QUERIES,
  rowId: text('rowid'),
  isAmong: (column, values) =>
    sql`${text(column)} IN (SELECT value FROM json_each(${JSON.stringify(values)}))`,
  // A kept statement for each row is faster than one that parses JSON.
  insert: (insert) => insert.rows.map((row) => inserting(insert, sql`VALUES (${listed(row)})`)),
  recordsMigrations: text(
    'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, ' +
      'name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
  ),
}

/** Returns a statement that inserts the rows of a query. */
export const inserting = ({ table, columns, skipsKnown }: RowInsert, rows: Sql): Sql =>
  joined(
    [
      sql`INSERT INTO ${text(table)} (${text(columns.join(', '))}) ${rows}`,
      ...(skipsKnown ? [text('ON CONFLICT DO NOTHING')] : []),
    ],
    ' ',
  )
