/** The port of the audit database over a function that runs statements. */
import type {
  AuditDatabase,
  AuditStatement,
  RowInsert,
  StatementResult,
} from '../../../audit/sql/database.ts'
import type { Dialect } from '../../../audit/sql/dialect.ts'
import { deflateNow } from './digest.ts'

/** A statement and the values of its parameters, in their order. */
export interface PlainStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

export type BoundStatement = PlainStatement | { readonly insert: RowInsert }

/**
 * Runs the statements in one transaction, and returns a result for each. Rejects with the error of the
 * database; then no statement has an effect.
 */
export type RunStatements = (
  statements: readonly BoundStatement[],
) => Promise<readonly StatementResult[]>

/** A database that is open. */
export interface OpenDatabase {
  readonly run: RunStatements
  readonly dialect: Dialect
  /** As of {@link AuditDatabase}. */
  readonly scrub?: () => Promise<boolean>
  /** Waits for calls that are in progress. */
  close(): Promise<void>
}

/** Creates the database. Its calls reject with the errors of `run`. */
export function databaseOver({ run, dialect, scrub }: Omit<OpenDatabase, 'close'>): AuditDatabase {
  const bound = new WeakMap<AuditStatement, BoundStatement>()

  function statementOf(bind: AuditStatement['bind'], work: BoundStatement): AuditStatement {
    async function execute() {
      const [result] = await run([work])
      if (result === undefined) throw new Error('the database gave no result')
      return result
    }
    const statement = {
      bind,
      async first(column?: string) {
        const row = (await execute()).results[0] as Record<string, unknown> | undefined
        if (row === undefined) return null
        return column === undefined ? row : row[column]
      },
      run: execute,
      all: execute,
    } as AuditStatement
    bound.set(statement, work)
    return statement
  }

  function plain(sql: string, values: readonly unknown[]): AuditStatement {
    return statementOf((...given) => plain(sql, given), { sql, values })
  }

  return {
    compression: deflateNow,
    dialect,
    ...(scrub && { scrub }),
    prepare: (sql) => plain(sql, []),
    insertion: (insert) =>
      statementOf(
        () => {
          throw new TypeError('the rows are bound already')
        },
        { insert },
      ),
    async batch<Row>(statements: AuditStatement[]) {
      const all = statements.map((statement) => bound.get(statement))
      if (!all.every((statement) => statement !== undefined))
        throw new TypeError('a statement of another database')
      return (await run(all)) as StatementResult<Row>[]
    },
  }
}
