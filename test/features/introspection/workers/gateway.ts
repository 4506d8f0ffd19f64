/** A whole gateway that introspects opaque tokens. */
import { introspection } from '../../../../src/features/introspection/index.ts'
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../../src/index.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {
    standard: { limit: 100_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
  features: [introspection()],
})
let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname === '/read-here') return new Response()
    app ??= createGateway(composeServices(env, policy), policy)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>
