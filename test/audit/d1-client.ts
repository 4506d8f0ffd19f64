/**
 * D1 of a Worker, from another process. One request carries a whole batch. The binding that wrangler lends to
 * tests makes a synchronous request for each `prepare` and `bind`.
 */
import type {
  AuditDatabase,
  AuditStatement,
  StatementResult,
} from '../../src/audit/sql/d1/database.ts'

/** A statement as JSON. A blob has the form of {@link encoded}. */
interface SentStatement {
  readonly sql: string
  readonly values: readonly unknown[]
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

/** Carries out a batch in the Worker. An error of D1 is in the response. */
export async function answerBatch(db: D1Database, request: Request): Promise<Response> {
  const statements = await request.json<readonly SentStatement[]>()
  try {
    return Response.json(
      await db.batch(
        statements.map(({ sql, values }) => db.prepare(sql).bind(...values.map(decoded))),
      ),
    )
  } catch (error) {
    return Response.json({ message: String((error as Error).message) }, { status: 500 })
  }
}

/** Creates the database behind a Worker that answers at a URL with {@link answerBatch}. */
export function createD1Client(url: URL): AuditDatabase {
  const sent = new WeakMap<AuditStatement, SentStatement>()
  function statementOf(sql: string, values: readonly unknown[]): AuditStatement {
    const statement = { bind: (...bound: unknown[]) => statementOf(sql, bound) }
    sent.set(statement, { sql, values: values.map(encoded) })
    return statement
  }
  return {
    prepare: (sql) => statementOf(sql, []),
    async batch<Row>(statements: AuditStatement[]) {
      const body = JSON.stringify(statements.map((statement) => sent.get(statement)))
      const response = await fetch(url, { method: 'POST', body })
      const answer: unknown = await response.json()
      if (!response.ok) throw new Error((answer as { message: string }).message)
      return answer as StatementResult<Row>[]
    },
  }
}
