/** The gateway of `code-policy.ts` as a Worker. */
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { policy as policyOf } from './code-policy.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: GatewayEnv, context: ExecutionContext) {
    if (app === undefined) {
      const policy = policyOf()
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
