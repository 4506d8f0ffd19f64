/** Every layer of the benchmark: the first segment of the path chooses which. */
import policy from '#policy'
import {
  composeServices,
  createGateway,
  createTokenVerifier,
  type GatewayEnv,
  type Policy,
  parseConfig,
  type Services,
} from '../../src/index.ts'
import { STAGES, type Stage } from '../layers/layers.ts'
import { roomy } from './policy.ts'
import { createStages } from './stages.ts'

interface BenchEnv extends GatewayEnv {
  readonly ORIGIN_URL: string
}

type Handler = (
  request: Request,
  env: BenchEnv,
  context: ExecutionContext,
) => Response | Promise<Response>

/** Where the path begins cannot be sooner than after `http://`. */
const SCHEME_LENGTH = 'http://'.length

const handlers = new Map<string, Handler>()

export default {
  fetch(request, env, context) {
    const { url } = request
    const path = url.indexOf('/', SCHEME_LENGTH)
    const name = url.slice(path + 1, url.indexOf('/', path + 1))
    let handler = handlers.get(name)
    if (handler === undefined) {
      const stage = STAGES.find((known) => known === name)
      if (stage === undefined) return new Response('no such layer', { status: 404 })
      handler = handlerOf(stage, env)
      handlers.set(name, handler)
    }
    return handler(request, env, context)
  },
} satisfies ExportedHandler<BenchEnv>

function handlerOf(stage: Stage, env: BenchEnv): Handler {
  if (stage === 'passthrough') return passthrough
  const table = roomy(policy, `/${stage}`)
  const services = servicesOf(stage, env, table)
  const app =
    stage === 'full' ? createGateway(services, table) : createStages(stage, services, table)
  return (request, bindings, context) => app.fetch(request, bindings, context)
}

function servicesOf(stage: Stage, env: BenchEnv, table: Policy): Services {
  const services = composeServices(env, table)
  if (stage !== 'authenticate-cold') return services
  const { issuers, publicUrl: ownIssuer } = parseConfig(env)
  return { ...services, verifier: createTokenVerifier({ issuers, ownIssuer, maxCachedBytes: 0 }) }
}

/** The least that a proxy can do. */
function passthrough(request: Request, { ORIGIN_URL }: BenchEnv): Promise<Response> {
  const { url } = request
  return fetch(ORIGIN_URL + url.slice(url.indexOf('/', SCHEME_LENGTH)), request)
}
