/** What the scenario `tokens` measures: the path chooses which; each isolate is asked for one. */
import policy from '#policy'
import { composeServices, createGateway, type GatewayEnv } from '../../src/index.ts'
import { createOperations } from './operations.ts'
import { roomy } from './policy.ts'
import { createValidation } from './validation.ts'

type Handler = (
  request: Request,
  env: GatewayEnv,
  context: ExecutionContext,
) => Response | Promise<Response>

/** Where the path begins cannot be sooner than after `http://`. */
const SCHEME_LENGTH = 'http://'.length

const table = roomy(policy, '')

const makers = {
  operations: (env: GatewayEnv) => createOperations(env),
  validation: (env: GatewayEnv) => createValidation(env),
  gateway: (env: GatewayEnv) => createGateway(composeServices(env, table), table).fetch,
} satisfies Record<string, (env: GatewayEnv) => Handler>

const handlers: { -readonly [Name in keyof typeof makers]?: Handler } = {}

export default {
  fetch(request, env, context) {
    const { url } = request
    const name = nameOf(url, url.indexOf('/', SCHEME_LENGTH))
    handlers[name] ??= makers[name](env)
    return handlers[name](request, env, context)
  },
} satisfies ExportedHandler<GatewayEnv>

/** Whatever is not one of the others is for the gateway, which has paths of its own. */
function nameOf(url: string, path: number): keyof typeof makers {
  if (url.startsWith('/operations/', path)) return 'operations'
  return url.startsWith('/validation', path) ? 'validation' : 'gateway'
}
