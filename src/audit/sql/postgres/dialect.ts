/** The statements of the audit trail on PostgreSQL. */
import type { StoringDialect } from '../dialect.ts'
import { joined, sql, text } from '../statement.ts'

export const POSTGRES: StoringDialect = {
  parameter: (place, value, type = typeOf(value)) => `$${place}${type === '' ? '' : `::${type}`}`,
  rowId: text('ctid'),
  contains: (whole, part) => sql`strpos(${whole}, ${part}) > 0`,
  isAmong: (column, values) => sql`${text(column)} = ANY(${{ type: 'text[]', value: values }})`,
  hasBit: (column, probe) =>
    text(`get_bit(${column}, ${probe >>> 3} % length(${column}) * 8 + ${probe & 7}) = 1`),
  // Arrays for each column, which the server needs not parse as JSON.
  insert({ table, columns, integers, rows, skipsKnown }) {
    if (rows.length === 0) return []
    const arrays = columns.map((column, place) => ({
      texts: ['', ''],
      parts: [
        {
          type: integers.has(column) ? 'bigint[]' : 'text[]',
          value: rows.map((row) => row[place]),
        },
      ],
    }))
    const known = text(skipsKnown ? ' ON CONFLICT DO NOTHING' : '')
    return [
      sql`INSERT INTO ${text(table)} (${text(columns.join(', '))}) SELECT * FROM unnest(${joined(arrays, ', ')})${known}`,
    ]
  },
  recordsMigrations: text(
    'CREATE TABLE IF NOT EXISTS d1_migrations (id BIGINT GENERATED ALWAYS AS IDENTITY, ' +
      'name TEXT COLLATE "C" UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
  ),
}

/** A parameter has the type of its value, as in SQLite. */
function typeOf(value: unknown): string {
  if (typeof value === 'number') return 'bigint'
  if (value instanceof Uint8Array) return 'bytea'
  return typeof value === 'string' ? 'text' : ''
}
