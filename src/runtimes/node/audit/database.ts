/** The audit database of a process, over a database that is open. */
import type { ConsumerDatabase, Result, TrailDatabase } from '../../../audit/sql/database.ts'
import type { Migration, StoringDialect } from '../../../audit/sql/dialect.ts'
import { type Rendered, render } from '../../../audit/sql/statement.ts'
import { deflateNow } from './digest.ts'

/**
 * Runs the statements in one transaction, and returns a result for each. Rejects with a `DatabaseError`, or with another
 * error of the database; then no statement has an effect.
 */
export type RunStatements = (statements: readonly Rendered[]) => Promise<readonly Result[]>

export interface OpenDatabase {
  readonly dialect: StoringDialect
  readonly migrations: readonly Migration[]
  readonly run: RunStatements
  /** As those of {@link ConsumerDatabase}. */
  migrate(statements: readonly Rendered[]): Promise<void>
  readonly scrub?: () => Promise<boolean>
  /** Waits for calls that are in progress. */
  close(): Promise<void>
}

/** Creates the database of a gateway. Its calls reject with the errors of `run`. */
export const trailDatabase = ({
  dialect,
  run,
}: Pick<OpenDatabase, 'dialect' | 'run'>): TrailDatabase => ({
  dialect,
  compression: deflateNow,
  run: (statements, { isRepeated = false } = {}) =>
    run(statements.map((statement) => ({ ...render(statement, dialect), isRepeated }))),
})

/** Creates the database of a consumer. Its calls reject with the errors of the open database. */
export const consumerDatabase = (
  open: Pick<OpenDatabase, 'dialect' | 'run' | 'migrate' | 'scrub'>,
): ConsumerDatabase => ({
  ...trailDatabase(open),
  dialect: open.dialect,
  migrate: (statements) =>
    open.migrate(statements.map((statement) => render(statement, open.dialect))),
  ...(open.scrub && { scrub: open.scrub }),
})
