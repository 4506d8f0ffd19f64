/**
 * The one port of this folder to a database. Those of D1 are in `d1`; those of SQLite and PostgreSQL are in
 * `runtimes/node/audit`.
 */
import type { Compression } from '../blocks/compression.ts'
import type { Dialect, StoringDialect } from './dialect.ts'
import type { Sql } from './statement.ts'

export interface Result {
  readonly rows: readonly unknown[]
  /** Rows that the statement has changed. 0 for a query. */
  readonly changes: number
}

export interface RunOptions {
  /**
   * The program runs statements with these texts all the time, so the database may keep their plans. Such statements
   * name their columns, and one plan of each is good for all values.
   */
  readonly isRepeated?: boolean
}

/** A database that can be queried. */
export interface TrailDatabase {
  readonly dialect: Dialect
  /** Compresses the events of blocks. */
  readonly compression: Compression
  /**
   * Runs the statements in one transaction, and returns a result for each. Rejects with a {@link DatabaseError}, or with
   * another error of the database; then no statement has an effect.
   */
  run(statements: readonly Sql[], options?: RunOptions): Promise<readonly Result[]>
}

/** The database of a consumer, which stores events. */
export interface ConsumerDatabase extends TrailDatabase {
  readonly dialect: StoringDialect
  /** Runs statements that change the schema in one transaction, while no other process does. */
  migrate(statements: readonly Sql[]): Promise<void>
  /**
   * Removes from the files what statements have deleted or replaced. Returns false if another process
   * uses it at the moment. Undefined: the program cannot do it there.
   */
  scrub?(): Promise<boolean>
}

/** `missing`: a table or a column. `duplicate`: a column that is to be added. */
export type Fault = 'missing' | 'duplicate' | 'constraint'

const MESSAGES: Readonly<Record<Fault, string>> = {
  missing: 'a table or a column is missing',
  duplicate: 'a column exists already',
  constraint: 'a constraint failed',
}

/** An error of the database that the trail expects. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError'
  readonly fault: Fault
  constructor(fault: Fault, options?: ErrorOptions) {
    super(MESSAGES[fault], options)
    this.fault = fault
  }
}

export const isFault = (error: unknown, fault: Fault): boolean =>
  error instanceof DatabaseError && error.fault === fault

export async function rowsOf<Row>(db: TrailDatabase, statement: Sql): Promise<readonly Row[]> {
  const [result] = await db.run([statement])
  return (result?.rows ?? []) as readonly Row[]
}

export const firstOf = async <Row>(db: TrailDatabase, statement: Sql): Promise<Row | undefined> =>
  (await rowsOf<Row>(db, statement))[0]

/** Runs one statement, and returns how many rows it has changed. */
export async function changesOf(db: TrailDatabase, statement: Sql): Promise<number> {
  const [result] = await db.run([statement])
  return result?.changes ?? 0
}
