/** What statements consist of, and what the databases of the audit trail write differently. */

export type Value = string | number | Uint8Array | null

/** A value whose type its own type does not show, such as an array. */
export interface Typed {
  readonly type: string
  readonly value: unknown
}

/** SQL that each database writes in its own way. */
export type InDialect = (dialect: Dialect) => Sql

/** A statement, or a part of one: text around values and other parts. */
export interface Sql {
  readonly texts: readonly string[]
  readonly parts: readonly (Value | Typed | Sql | InDialect)[]
}

/** A file of a folder of migrations. */
export interface Migration {
  readonly name: string
  /** Statements, each ended by `;`, with no `;` inside. */
  readonly sql: string
}

export interface RowInsert {
  readonly table: string
  readonly columns: readonly string[]
  /** The columns that are integers. The others are text. */
  readonly integers: ReadonlySet<string>
  /** Values in the order of the columns. */
  readonly rows: readonly (readonly (string | number | null)[])[]
  /** Leaves out rows with a key that is taken. Default: such a row fails the transaction. */
  readonly skipsKnown?: boolean
}

/** What queries need. */
export interface Dialect {
  /** Returns a parameter by its number from 1. `type` is given if that of the value does not show it. */
  parameter(place: number, value: unknown, type?: string): string
  contains(whole: Sql, part: Value): Sql
  /**
   * Reports whether a column of bytes has a bit. The low three bits of the probe select the bit of a byte, and the
   * others select the byte, modulo the length.
   */
  hasBit(column: string, probe: number): Sql
}

/** What a consumer needs beside it. */
export interface StoringDialect extends Dialect {
  /** The column with the place of a row. */
  readonly rowId: Sql
  /** Reports whether a column has one of the values, of which there may be any number. */
  isAmong(column: string, values: readonly string[]): Sql
  /** Returns statements that insert the rows. */
  insert(insert: RowInsert): readonly Sql[]
  /** Creates the table in which wrangler records migrations. */
  readonly recordsMigrations: Sql
}
