/** The gateway Worker: runs the standard pipeline with the policy in `portcullis.config.ts`. */
import policy from '#policy'
import { composeServices, createGateway, type GatewayEnv, refuseAll } from '../src/index.ts'
import { requirePolicy } from '../src/policy/policy.ts'

// Fails when the module loads, not on the first request.
requirePolicy(policy)

/** Created on the first request of an isolate. The environment never changes within an isolate. */
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
    return createGateway(composeServices(env, policy), policy)
  } catch (error) {
    return refuseAll(error)
  }
}
