/**
 * The part of a D1 binding that is used. The types of `@cloudflare/workers-types` would have to be
 * installed by every consumer of the package.
 */
export interface AuditDatabase {
  prepare(sql: string): AuditStatement
  /** Runs the statements in one transaction. */
  batch<Row = unknown>(statements: AuditStatement[]): Promise<StatementResult<Row>[]>
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
