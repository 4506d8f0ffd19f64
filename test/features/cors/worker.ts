/** The complete gateway as a Worker, with the page of the test in its policy. */
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { policyFor } from './policy.ts'

type Env = GatewayEnv & { readonly PAGE: string }

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: Env, context: ExecutionContext) {
    if (app === undefined) {
      const policy = policyFor(env.PAGE)
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
