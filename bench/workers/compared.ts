/** Worker with the gateway of any revision, which can be slowed down. */
import type { composeServices, createGateway, GatewayEnv, Policy } from '../../src/index.ts'
import { roomy } from './policy.ts'

/** Path that sets the number of useless rounds for each following request. */
export const BURN_PATH = '/-/bench/burn/'

/** The used exports of a revision. Its types may differ otherwise. */
export interface ComparedRevision {
  readonly createGateway: typeof createGateway
  readonly composeServices: typeof composeServices
  readonly policy: Policy
}

/** Serves the gateway of `revision`. `<BURN_PATH><rounds>` slows down later requests. */
export function comparedWorker(revision: ComparedRevision): ExportedHandler<GatewayEnv> {
  const { composeServices, createGateway, policy: shipped } = revision
  const policy = roomy(shipped, '')
  let gateway: ReturnType<typeof createGateway> | undefined
  let rounds = 0
  return {
    fetch(request, env, context) {
      const { pathname } = new URL(request.url)
      if (pathname.startsWith(BURN_PATH)) {
        rounds = Number(pathname.slice(BURN_PATH.length))
        return new Response(`${rounds}`)
      }
      burn(rounds)
      gateway ??= createGateway(composeServices(env, policy), policy)
      return gateway.fetch(request, env, context)
    },
  }
}

/** Outside the function, so that the compiler cannot remove the computation. */
let ashes = 1

function burn(rounds: number): void {
  for (let round = 0; round < rounds; round++) ashes = Math.imul(ashes ^ round, 0x9e3779b1)
}
