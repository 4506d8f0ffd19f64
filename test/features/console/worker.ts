/** The gateway of the tests as a Worker, and its audit database at a path of its own. */
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { answerBatch } from '../../audit/d1-client.ts'
import { DATABASE_PATH, policyWith } from './policy.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(
    request: Request,
    env: GatewayEnv & { readonly AUDIT_DB?: D1Database },
    context: ExecutionContext,
  ) {
    if (new URL(request.url).pathname === DATABASE_PATH && env.AUDIT_DB !== undefined)
      return answerBatch(env.AUDIT_DB, request)
    if (app === undefined) {
      const policy = policyWith()
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
