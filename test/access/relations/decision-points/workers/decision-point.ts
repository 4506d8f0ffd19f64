/** A Worker that queries a policy decision point for each request, and reports the result. */

import type { PolicyDecisionPoint } from '../../../../../src/access/relations/decision-point.ts'
import { parseTuple } from '../../../../../src/access/relations/tuple.ts'
import { Unavailable } from '../../../../../src/errors.ts'
import { authzen } from '../../../../../src/features/authzen/index.ts'
import { openfga } from '../../../../../src/features/openfga/index.ts'
import { createBreakers } from '../../../../../src/isolate/breakers.ts'

interface Env {
  readonly AUTHORITY_URL: string
  readonly AUTHORITY_TOKEN: string
  readonly STORE: string
}

const { watch } = createBreakers({ alarm: () => undefined })
const EXTERNAL = { openfga: openfga(), authzen: authzen() }
/** One decision point for each route, so that one test does not open the breaker of another. */
const made = new Map<string, PolicyDecisionPoint>()

function authorityOf(route: string, kind: 'openfga' | 'authzen', env: Env): PolicyDecisionPoint {
  const variables = {
    OPENFGA_URL: env.AUTHORITY_URL,
    OPENFGA_STORES: new Map([['', { store: env.STORE }]]),
    OPENFGA_TOKEN: env.AUTHORITY_TOKEN,
    AUTHZEN_URLS: new Map([['', `${env.AUTHORITY_URL}/pdp`]]),
    AUTHZEN_TOKEN: env.AUTHORITY_TOKEN,
    AUTHORITY_TIMEOUT_MS: route.startsWith('/hasty-') ? undefined : 5_000,
  }
  const authority = made.get(route) ?? EXTERNAL[kind].create({ variables }, { watch })
  made.set(route, authority)
  return authority
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/read-here') return new Response()
    const tuple = parseTuple(searchParams.get('tuple') ?? '')
    if (tuple === undefined) return new Response('no tuple', { status: 400 })
    const kind = pathname.includes('openfga') ? 'openfga' : 'authzen'
    try {
      const authority = authorityOf(pathname, kind, env)
      const { decision } = await authority.check({ tenant: null, contextualTuples: [], ...tuple })
      return new Response(decision.outcome)
    } catch (error) {
      if (!(error instanceof Unavailable)) return new Response(String(error), { status: 500 })
      return new Response(`${error.message}${error.shortCircuited ? ', short-circuited' : ''}`, {
        status: 503,
      })
    }
  },
}
