/** The statements of the audit trail on PostgreSQL. */
import type { RowInsert } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import { POSTGRES_MIGRATIONS } from './migrations.generated.ts'

/** The key of an advisory lock. */
const SCHEMA_LOCK = 'SELECT pg_advisory_xact_lock(8101820098873224300)'

export const POSTGRES: Dialect & { readonly lock: string } = {
  rowId: 'ctid',
  bytes: (hex) => `'\\x${hex}'::bytea`,
  recordsMigrations:
    'CREATE TABLE IF NOT EXISTS d1_migrations (id BIGINT GENERATED ALWAYS AS IDENTITY, ' +
    'name TEXT COLLATE "C" UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
  lock: SCHEMA_LOCK,
  migrations: POSTGRES_MIGRATIONS,
}

/** A statement and the values of its parameters `$1`, `$2` and so on. */
export interface NumberedStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

/**
 * Returns the statement with numbered parameters. `?` is the next one, and `?2` may occur several times, or
 * not at all. A parameter has the type of its value, as in SQLite. No literal of a statement contains a
 * question mark. Throws a `TypeError` if a parameter has no value.
 */
export function numbered(sql: string, values: readonly unknown[]): NumberedStatement {
  const [begin = '', ...parts] = sql.split('?')
  const used: number[] = []
  let text = begin
  let last = 0
  for (const part of parts) {
    const given = Number.parseInt(part, 10)
    last = Number.isNaN(given) ? last + 1 : given
    const index = last - 1
    if (index >= values.length) throw new TypeError('a parameter of a statement has no value')
    if (!used.includes(index)) used.push(index)
    const rest = Number.isNaN(given) ? part : part.slice(String(given).length)
    text += `$${used.indexOf(index) + 1}${typeOf(values[index])}${rest}`
  }
  return { sql: text, values: used.map((index) => values[index]) }
}

/** Inserts rows as an array for each column, which the server needs not parse as JSON. */
export function insertion({ table, columns, integers, rows }: RowInsert): NumberedStatement {
  const arrays = columns.map((column, index) => {
    const type = integers.has(column) ? 'bigint' : 'text'
    return `$${index + 1}::${type}[]`
  })
  return {
    sql: `INSERT INTO ${table} (${columns.join(', ')}) SELECT * FROM unnest(${arrays.join(', ')})`,
    values: columns.map((_, index) => rows.map((row) => row[index])),
  }
}

function typeOf(value: unknown): string {
  if (typeof value === 'number') return '::bigint'
  if (value instanceof Uint8Array) return '::bytea'
  return typeof value === 'string' ? '::text' : ''
}
