/** A whole gateway whose automatic bans refuse what `REFUSES` says. */
import { composeServices, createGateway, type GatewayEnv } from '../../../../src/index.ts'
import { policyFor } from '../causes-policy.ts'

type Env = GatewayEnv & { readonly REFUSES: 'credentials' | 'everything' | '' }

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: Env, context: ExecutionContext) {
    if (app === undefined) {
      const policy = policyFor(env.REFUSES === '' ? undefined : env.REFUSES)
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
