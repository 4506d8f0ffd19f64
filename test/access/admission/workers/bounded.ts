/** A whole gateway with a staleness bound in its policy, in the platform's runtime. */
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../../src/index.ts'

interface BoundedEnv extends GatewayEnv {
  readonly MAX_STALENESS_MS: string
}

let app: ReturnType<typeof createGateway> | undefined

function gatewayOf(env: BoundedEnv): ReturnType<typeof createGateway> {
  const policy = definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    revocation: { maxStalenessMs: Number(env.MAX_STALENESS_MS) },
  })
  return createGateway(composeServices(env, policy), policy)
}

export default {
  fetch(request, env, context) {
    app ??= gatewayOf(env)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<BoundedEnv>
