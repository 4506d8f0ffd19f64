/** Worker with every layer of the pipeline. The first segment of the path is the layer's stage. */
import policy from '#policy'
import {
  composeServices,
  createGateway,
  type GatewayEnv,
  type Policy,
  type Services,
} from '../../src/index.ts'
import { createTokenVerifier, parseConfig } from '../../src/parts.ts'
import { STAGES, type Stage } from '../layers/layers.ts'
import { roomy } from './policy.ts'
import { bySegment, type Handler, passthrough } from './routing.ts'
import { createStages } from './stages.ts'

interface BenchEnv extends GatewayEnv {
  readonly ORIGIN_URL: string
}

export default bySegment<BenchEnv>((segment, env) => {
  const stage = STAGES.find((known) => known === segment)
  return stage === undefined ? undefined : handlerOf(stage, env)
})

function handlerOf(stage: Stage, env: BenchEnv): Handler<BenchEnv> {
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
