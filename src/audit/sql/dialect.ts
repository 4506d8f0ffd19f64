/** What differs between the databases in the statements of this folder. */

/** A file of a folder of migrations. */
export interface Migration {
  readonly name: string
  /** Statements, each ended by `;`, with no `;` inside. */
  readonly sql: string
}

export interface Dialect {
  /** The column with the place of a row. */
  readonly rowId: string
  /** Returns a literal of bytes, which are given in hexadecimal. */
  bytes(hex: string): string
  /** Creates the table in which wrangler records migrations. */
  readonly recordsMigrations: string
  /** A statement before the ones of a migration, so that one process at a time changes the schema. */
  readonly lock?: string
  /** Default: the ones of D1 and SQLite, in the folder `migrations`. */
  readonly migrations?: readonly Migration[]
}

/** D1 and SQLite. PostgreSQL is in `postgres/`. */
export const SQLITE: Dialect = {
  rowId: 'rowid',
  bytes: (hex) => `X'${hex}'`,
  recordsMigrations:
    'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, ' +
    'name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
}
