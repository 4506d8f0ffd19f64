/** The whole gateway in front of an MCP server, with or without its guards (GUARD). */
import { composeServices, createGateway, type GatewayEnv } from '../../../../src/index.ts'
import { policyOf } from './policy.ts'

function gatewayOf(env: GatewayEnv & { GUARD: string }) {
  const policy = policyOf(env.GUARD === 'yes')
  return createGateway(composeServices(env, policy), policy)
}

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: GatewayEnv & { GUARD: string }, context: ExecutionContext) {
    app ??= gatewayOf(env)
    return app.fetch(request, env, context)
  },
}
