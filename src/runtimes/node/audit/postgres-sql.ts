/** Translates the SQL of the audit trail, which is that of SQLite, to that of PostgreSQL. */
import type { RowInsert } from '../../../audit/sql/database.ts'
import type { BoundStatement, PlainStatement } from './database.ts'

/** A literal, which stays as it is, or a placeholder. */
const LITERAL_OR_PLACEHOLDER = /'[^']*'|\?(\d*)/g

/**
 * Returns the statement with placeholders of PostgreSQL. A placeholder has the type of its value: in
 * SQLite, values have types. `?2` may occur several times, or not at all.
 */
export function translated(statement: BoundStatement): PlainStatement {
  if ('insert' in statement) return insertion(statement.insert)
  const { sql, values } = statement
  if (isDefinition(sql)) return { sql: definition(sql), values: [] }
  const used: number[] = []
  let last = 0
  const text = sql.replace(LITERAL_OR_PLACEHOLDER, (match, digits?: string) => {
    if (digits === undefined) return match
    last = digits === '' ? last + 1 : Number(digits)
    const index = last - 1
    if (!used.includes(index)) used.push(index)
    return `$${used.indexOf(index) + 1}${typeOf(values[index])}`
  })
  return {
    // The place of a row on the disk.
    sql: text
      .replaceAll(/\browid\b/g, 'ctid')
      .replaceAll(/X('[0-9a-f]*')/g, (_, bytes: string) => `'\\x${bytes.slice(1)}::bytea`),
    values: used.map((index) => values[index]),
  }
}

/** Inserts rows as an array for each column, which the server needs not parse as JSON. */
function insertion({ table, columns, integers, rows }: RowInsert): PlainStatement {
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

/** Reports whether the statement changes the schema. Comments may precede it. */
export const isDefinition = (sql: string): boolean =>
  /^(\s|--.*\n)*(CREATE|ALTER|DROP)\s/i.test(sql)

/** An integer has 64 bits, and text is compared as bytes, as in SQLite. */
const definition = (sql: string): string =>
  sql
    .replaceAll(/\bINTEGER PRIMARY KEY( AUTOINCREMENT)?/g, 'BIGINT GENERATED ALWAYS AS IDENTITY')
    .replaceAll(/\bINTEGER\b/g, 'BIGINT')
    .replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"')
    .replaceAll(/\bBLOB\b/g, 'BYTEA')
    .replaceAll(/\) STRICT\b/g, ')')

/**
 * Creates functions that SQLite has and that the statements use.
 *
 * PostgreSQL converts neither an escaped NUL nor an escaped lone surrogate of JSON to text, so
 * `json_document` replaces both: an erasure must find a person beside them.
 */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION json_each(list text) RETURNS TABLE (value json)
LANGUAGE sql IMMUTABLE AS $$ SELECT json_array_elements(list::json) $$;

CREATE OR REPLACE FUNCTION instr(string text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT strpos(string, part) $$;

CREATE OR REPLACE FUNCTION instr(string bytea, part bytea) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT position(part IN string) $$;

CREATE OR REPLACE FUNCTION json_document(document text) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT regexp_replace(document, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\ufffd', 'gi')::jsonb
$$;

CREATE OR REPLACE FUNCTION json_valid(document text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN json_document(document) IS NOT NULL;
EXCEPTION WHEN data_exception THEN
  RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_path_query_first(json_document(document), path::jsonpath) #>> '{}'
$$;
`
