/** A Worker that asks an authority over relations for each request, and says what became of it. */

import { Unavailable } from '../../../../src/errors.ts'
import { createRelationAuthority } from '../../../../src/gateway/relation-authority.ts'
import { createBreakers } from '../../../../src/isolate/breakers.ts'
import type { RelationAuthority } from '../../../../src/relations/authority.ts'
import { parseTuple } from '../../../../src/relations/tuple.ts'
import { authoritiesOf } from '../../../../src/validators/authority.ts'

interface Env {
  readonly AUTHORITY_URL: string
  readonly AUTHORITY_TOKEN: string
  readonly STORE: string
}

const { watch } = createBreakers({ alarm: () => undefined })
/** One for each route, so that one test does not open the breaker of another. */
const made = new Map<string, RelationAuthority>()

function authorityOf(route: string, kind: 'openfga' | 'authzen', env: Env): RelationAuthority {
  const authorities = authoritiesOf({
    OPENFGA_URL: env.AUTHORITY_URL,
    OPENFGA_STORES: new Map([['', { store: env.STORE }]]),
    OPENFGA_TOKEN: env.AUTHORITY_TOKEN,
    AUTHZEN_URLS: new Map([['', `${env.AUTHORITY_URL}/pdp`]]),
    AUTHZEN_TOKEN: env.AUTHORITY_TOKEN,
    AUTHORITY_TIMEOUT_MS: route.startsWith('/patient-') ? 5_000 : undefined,
  })
  const authority =
    made.get(route) ?? createRelationAuthority({ authorities }, { authority: kind, watch })
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
      return new Response(`${error.message}${error.unasked ? ', unasked' : ''}`, { status: 503 })
    }
  },
}
