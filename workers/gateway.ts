/** The gateway Worker: the shipped pipeline over the policy in `portcullis.config.ts`. */
import policy from '#policy'
import { createGateway, createServices, type GatewayEnv, refuseAll } from '../src/index.ts'
import { requirePolicy } from '../src/policy.ts'

// With the first look at it, not with the first request.
requirePolicy(policy)

/** Built by the first request of an isolate, out of an environment that never changes. */
let gateway:
  | {
      fetch(
        request: Request,
        env: GatewayEnv,
        context: ExecutionContext,
      ): Response | Promise<Response>
    }
  | undefined

export default {
  fetch(request, env, context) {
    gateway ??= buildGateway(env)
    return gateway.fetch(request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>

function buildGateway(env: GatewayEnv) {
  try {
    return createGateway(createServices(env), policy)
  } catch (error) {
    return refuseAll(error)
  }
}
