import type { Compression } from '../blocks/compression.ts'
import type { Dialect } from './dialect.ts'

/**
 * The part of a D1 binding that is used. The types of `@cloudflare/workers-types` would have to be
 * installed by every consumer of the package.
 */
export interface AuditDatabase {
  prepare(sql: string): AuditStatement
  /** Runs the statements in one transaction. */
  batch<Row = unknown>(statements: AuditStatement[]): Promise<StatementResult<Row>[]>
  /**
   * Returns a statement that inserts rows, the fastest way that the database has. A binding of D1 does not
   * have it: there, one statement parses the rows from JSON.
   */
  insertion?(rows: RowInsert): AuditStatement
  /**
   * Removes from the files what statements have deleted or replaced. Returns false if another process
   * uses it at the moment. A binding of D1 does not have it.
   */
  scrub?(): Promise<boolean>
  /** Default: that of D1 and SQLite. */
  readonly dialect?: Dialect
  /** Compresses blocks. Default: that of Web Streams. */
  readonly compression?: Compression
}

export type Value = string | number | null

/** A BLOB as a database returns it: D1 has a list of numbers. */
export type Bytes = Uint8Array | readonly number[]

export const bytesOf = (value: Bytes): Uint8Array =>
  value instanceof Uint8Array ? value : Uint8Array.from(value)

/** Rows to insert. A place or an id that is taken fails the transaction. */
export interface RowInsert {
  readonly table: string
  readonly columns: readonly string[]
  /** The columns that are integers. The others are text. */
  readonly integers: ReadonlySet<string>
  /** Values in the order of the columns. */
  readonly rows: readonly (readonly Value[])[]
}

export interface AuditStatement {
  bind(...values: unknown[]): AuditStatement
  first<Value = unknown>(column: string): Promise<Value | null>
  first<Row = Record<string, unknown>>(): Promise<Row | null>
  run<Row = Record<string, unknown>>(): Promise<StatementResult<Row>>
  all<Row = Record<string, unknown>>(): Promise<StatementResult<Row>>
}

export interface StatementResult<Row = unknown> {
  readonly results: Row[]
  readonly meta: { readonly changes: number }
}
