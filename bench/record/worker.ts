/** Worker with the gateway of the recorded run. */
import { composeServices, createGateway, type GatewayEnv } from '../../src/index.ts'
import { policy } from './policy.ts'

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request, env, context) {
    app ??= createGateway(composeServices(env, policy), policy)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>
