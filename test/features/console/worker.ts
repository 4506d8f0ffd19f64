/** The gateway of the tests as a Worker, and its audit database at a path of its own. */
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { answerBatch } from '../../audit/d1-client.ts'
import { DATABASE_PATH, policyWith, ROWS_READ } from './policy.ts'

/** Of all requests, as D1 bills them. */
let rowsRead = 0

/** Counts the rows that D1 reads. The gateway runs its statements in batches only. */
const counting = (db: D1Database) =>
  ({
    prepare: (sql: string) => db.prepare(sql),
    async batch<Row>(statements: D1PreparedStatement[]) {
      const results = await db.batch<Row>(statements)
      for (const { meta } of results) rowsRead += meta.rows_read
      return results
    },
  }) as Pick<D1Database, 'prepare' | 'batch'>

let app: ReturnType<typeof createGateway> | undefined

export default {
  async fetch(
    request: Request,
    env: GatewayEnv & { readonly AUDIT_DB?: D1Database },
    context: ExecutionContext,
  ) {
    if (new URL(request.url).pathname === DATABASE_PATH && env.AUDIT_DB !== undefined)
      return answerBatch(env.AUDIT_DB, request)
    if (app === undefined) {
      const policy = policyWith()
      const counted = { ...env, ...(env.AUDIT_DB && { AUDIT_DB: counting(env.AUDIT_DB) }) }
      const services = composeServices(counted as GatewayEnv, policy)
      app = createGateway({ ...services, auditSink: { record() {} } }, policy)
    }
    const before = rowsRead
    const answer = await app.fetch(request, env, context)
    const response = new Response(answer.body, answer)
    response.headers.set(ROWS_READ, String(rowsRead - before))
    return response
  },
}
