/**
 * The whole gateway in front of an MCP server. The variable INSPECT switches the inspection of
 * `/mcp` on.
 */
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
  type InspectDefinition,
} from '../../../src/index.ts'

const inspect: InspectDefinition = {
  jsonRpc: {
    methods: {
      initialize: true,
      'notifications/initialized': true,
      ping: true,
      'tools/list': true,
      'tools/call': true,
    },
    tools: { ask_client: true, ask_refusing_client: true },
  },
}

const policyOf = (isInspected: boolean) =>
  definePolicy({
    roles: { user: ['mcp:use'] },
    limits: {},
    routes: [
      {
        method: 'POST',
        path: '/mcp',
        permission: 'mcp:use',
        maxBodyBytes: 65_536,
        ...(isInspected && { inspect }),
      },
      { method: 'GET', path: '/mcp', permission: 'mcp:use' },
      { method: 'DELETE', path: '/mcp', permission: 'mcp:use', maxBodyBytes: 0 },
    ],
  })

function gatewayOf(env: GatewayEnv & { INSPECT: string }) {
  const policy = policyOf(env.INSPECT === 'yes')
  return createGateway(composeServices(env, policy), policy)
}

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: GatewayEnv & { INSPECT: string }, context: ExecutionContext) {
    app ??= gatewayOf(env)
    return app.fetch(request, env, context)
  },
}
