/** Worker of the scenario `tokens`: operations, validation alone, and the whole gateway. */
import policy from '#policy'
import { composeServices, createGateway, type GatewayEnv } from '../../src/index.ts'
import { createOperations } from './operations.ts'
import { roomy } from './policy.ts'
import { type Handler, pathStart } from './routing.ts'
import { createValidation } from './validation.ts'

const table = roomy(policy, '')

const makers = {
  operations: createOperations,
  validation: createValidation,
  gateway: (env: GatewayEnv) => createGateway(composeServices(env, table), table).fetch,
} satisfies Record<string, (env: GatewayEnv) => Handler<GatewayEnv>>

const handlers: { -readonly [Name in keyof typeof makers]?: Handler<GatewayEnv> } = {}

export default {
  fetch(request, env, context) {
    const name = nameOf(request.url)
    handlers[name] ??= makers[name](env)
    return handlers[name](request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>

/** Returns the handler of a URL. Paths without an own handler belong to the gateway. */
function nameOf(url: string): keyof typeof makers {
  const start = pathStart(url)
  if (url.startsWith('/operations/', start)) return 'operations'
  return url.startsWith('/validation', start) ? 'validation' : 'gateway'
}
