/** A gateway that receives signals, as a Worker. */
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { signalPolicy } from './policy.ts'

type Env = GatewayEnv & { readonly MAX_STALENESS_MS: string }

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: Env, context: ExecutionContext) {
    if (app === undefined) {
      const policy = signalPolicy(undefined, Number(env.MAX_STALENESS_MS))
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
