/** The gateway of the stream tests in the platform's runtime. */
import { composeServices, createGateway, type GatewayEnv } from '../../src/index.ts'
import { streamPolicy } from './policy.ts'

interface StreamEnv extends GatewayEnv {
  readonly MAX_STALENESS_MS: string
}

let app: ReturnType<typeof createGateway> | undefined

function gatewayOf(env: StreamEnv): ReturnType<typeof createGateway> {
  const policy = streamPolicy(Number(env.MAX_STALENESS_MS))
  return createGateway(composeServices(env, policy), policy)
}

export default {
  fetch(request, env, context) {
    app ??= gatewayOf(env)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<StreamEnv>
