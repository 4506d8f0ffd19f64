/** The whole gateway in front of an MCP server, with or without its guards (GUARD). */
import { mcp } from '../../../src/features/mcp.ts'
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../src/index.ts'

const policyOf = (isGuarded: boolean) =>
  definePolicy({
    roles: { user: ['mcp:use'] },
    limits: {},
    routes: isGuarded
      ? [
          ...mcp({
            path: '/mcp',
            permission: 'mcp:use',
            recheckSeconds: 1,
            tools: { ask_client: true, ask_refusing_client: true },
          }),
        ]
      : [
          { method: 'POST', path: '/mcp', permission: 'mcp:use' },
          { method: 'GET', path: '/mcp', permission: 'mcp:use' },
          { method: 'DELETE', path: '/mcp', permission: 'mcp:use', maxBodyBytes: 0 },
        ],
  })

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
