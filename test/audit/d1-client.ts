/**
 * D1 of a Worker, from another process. One request carries a whole batch. The binding that wrangler lends to
 * tests makes a synchronous request for each `prepare` and `bind`.
 */
import type { AuditDatabase, AuditStatement } from '../../src/audit/sql/database.ts'

/** A statement as JSON. A blob has the form of {@link encoded}. */
export interface SentStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

export interface SentCall {
  readonly method: 'batch' | 'all' | 'run' | 'first'
  readonly statements: readonly SentStatement[]
  /** Of `first`. */
  readonly column?: string | undefined
}

type Blob = { readonly base64: string }

const isBlob = (value: unknown): value is Blob => typeof value === 'object' && value !== null

function encoded(value: unknown): unknown {
  // JSON would send NULL, which D1 does not do.
  if (value === undefined) throw new TypeError('a value of a statement is undefined')
  return value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value
}

function decoded(value: unknown): unknown {
  if (!isBlob(value)) return value
  return Uint8Array.from(atob(value.base64), (character) => character.charCodeAt(0))
}

/** Carries out a call in the Worker. An error of D1 is in the response. */
export async function answerCall(db: D1Database, request: Request): Promise<Response> {
  const { method, statements, column } = await request.json<SentCall>()
  const prepared = statements.map(({ sql, values }) => db.prepare(sql).bind(...values.map(decoded)))
  try {
    if (method === 'batch') return Response.json(await db.batch(prepared))
    const [statement] = prepared
    if (statement === undefined) throw new Error('no statement')
    if (method !== 'first') return Response.json(await statement[method]())
    return Response.json(await (column === undefined ? statement.first() : statement.first(column)))
  } catch (error) {
    return Response.json({ message: String((error as Error).message) }, { status: 500 })
  }
}

/** Creates the database behind a Worker that answers calls at a URL with {@link answerCall}. */
export function createD1Client(url: URL): AuditDatabase {
  async function call<Answer>(body: SentCall): Promise<Answer> {
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
    if (response.ok) return (await response.json()) as Answer
    throw new Error(((await response.json()) as { message: string }).message)
  }
  const sent = new WeakMap<AuditStatement, SentStatement>()
  function statementOf(sql: string, values: readonly unknown[]): AuditStatement {
    const statements = [{ sql, values: values.map(encoded) }]
    const statement: AuditStatement = {
      bind: (...bound) => statementOf(sql, bound),
      first: (column?: string) => call({ method: 'first', statements, column }),
      run: () => call({ method: 'run', statements }),
      all: () => call({ method: 'all', statements }),
    }
    sent.set(statement, { sql, values: statements[0]?.values ?? [] })
    return statement
  }
  return {
    prepare: (sql) => statementOf(sql, []),
    batch: (statements) =>
      call({
        method: 'batch',
        statements: statements.map((statement) => {
          const one = sent.get(statement)
          if (one === undefined) throw new TypeError('a statement of another database')
          return one
        }),
      }),
  }
}
