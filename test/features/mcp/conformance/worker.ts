/** The gateway before the server of the conformance suite, as a Worker. */
import { composeServices, createGateway, type GatewayEnv } from '../../../../src/index.ts'
import { policy } from './policy.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: GatewayEnv, context: ExecutionContext) {
    app ??= createGateway(composeServices(env, policy), policy)
    return app.fetch(request, env, context)
  },
}
