/** A whole gateway without bans, which counts the signatures that it really verifies. */
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../../src/index.ts'

let verifications = 0
const verify = crypto.subtle.verify.bind(crypto.subtle)
Object.defineProperty(crypto.subtle, 'verify', {
  value(...args: Parameters<typeof verify>) {
    verifications += 1
    return verify(...args)
  },
})

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {},
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
  abuse: { bans: false },
})
let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname === '/verifications')
      return new Response(String(verifications))
    app ??= createGateway(composeServices(env, policy), policy)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>
