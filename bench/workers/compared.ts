/** The gateway of any revision, and a knob that makes it slower. */
import type { composeServices, createGateway, GatewayEnv, Policy } from '../../src/index.ts'
import { BURN_PATH } from '../compare/burn-path.ts'
import { roomy } from './policy.ts'

/** What a revision exports. Its types may be others by then; this is all that is asked of them. */
export interface ComparedRevision {
  readonly createGateway: typeof createGateway
  readonly composeServices: typeof composeServices
  readonly policy: Policy
}

/**
 * Serves the whole gateway of `revision` with its policy's limits raised. `<BURN_PATH><rounds>` sets
 * how long each request from then on computes in vain before it is served.
 */
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

/** Outside of the function, or the compiler would see that nobody wants the result. */
let ashes = 1

function burn(rounds: number): void {
  for (let round = 0; round < rounds; round++) ashes = Math.imul(ashes ^ round, 0x9e3779b1)
}
