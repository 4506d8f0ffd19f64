/** The whole gateway as a Worker, with limits and sessions that no burst of a test exhausts. */
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../src/index.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {
    generous: { limit: 1_000_000, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['generous'] }],
  features: [authorizationServer()],
  tokens: { sessionSeconds: 86_400 },
})

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: GatewayEnv, context: ExecutionContext) {
    app ??= createGateway(
      { ...composeServices(env, policy), auditSink: { record: () => {} } },
      policy,
    )
    if (new URL(request.url).pathname === '/read-here') return new Response()
    return app.fetch(request, env, context)
  },
}
