/** Statements of tests: text with a `?` for each value. */
import type { TrailDatabase } from '../../src/audit/sql/database.ts'
import type { Migration } from '../../src/audit/sql/dialect.ts'
import { MIGRATIONS } from '../../src/audit/sql/migrations.generated.ts'
import { POSTGRES } from '../../src/audit/sql/postgres/dialect.ts'
import { POSTGRES_MIGRATIONS } from '../../src/audit/sql/postgres/migrations.generated.ts'
import type { Sql, Value } from '../../src/audit/sql/statement.ts'

export interface Prepared {
  readonly statement: Sql
  bind(...values: readonly Value[]): Prepared
  all<Row = Record<string, unknown>>(): Promise<{
    readonly results: Row[]
    readonly changes: number
  }>
  first<Row = Record<string, unknown>>(): Promise<Row | undefined>
  run(): Promise<unknown>
}

/** Prepares a statement of a test. No literal in it contains a question mark. */
export function prepare(db: TrailDatabase, text: string, values: readonly Value[] = []): Prepared {
  const statement = { texts: text.split('?'), parts: values }
  async function all<Row>() {
    const [result] = await db.run([statement])
    return { results: (result?.rows ?? []) as Row[], changes: result?.changes ?? 0 }
  }
  return {
    statement,
    bind: (...bound) => prepare(db, text, bound),
    all,
    first: async <Row>() => (await all<Row>()).results[0],
    run: all,
  }
}

/** Runs the statements in one transaction. */
export const runAll = (db: TrailDatabase, statements: readonly Prepared[]) =>
  db.run(statements.map(({ statement }) => statement))

/** Returns the migrations of the kind of database. */
export const migrationsOf = ({ dialect }: TrailDatabase): readonly Migration[] =>
  dialect === POSTGRES ? POSTGRES_MIGRATIONS : MIGRATIONS
