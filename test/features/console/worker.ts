/** The gateway of the tests as a Worker. */
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { policyWith } from './policy.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: GatewayEnv, context: ExecutionContext) {
    if (app === undefined) {
      const policy = policyWith()
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
