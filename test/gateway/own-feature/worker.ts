/** The gateway of the example of a feature, in the platform's runtime. */
import policy from '../../../examples/feature/policy.ts'
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request, env, context) {
    app ??= createGateway(composeServices(env, policy), policy)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>
