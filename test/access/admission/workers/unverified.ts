/** The gateway of `unverified-credentials.test.ts` as a Worker. */
import { composeServices, createGateway, type GatewayEnv } from '../../../../src/index.ts'
import { unverifiedPolicy } from '../unverified-policy.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request, env, context) {
    if (app === undefined) {
      const policy = unverifiedPolicy(true)
      app = createGateway(composeServices(env, policy), policy)
    }
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>
