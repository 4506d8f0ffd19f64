/** Responses to the preflight requests of browsers (Fetch, section 3.3.2). */
import type { MiddlewareHandler } from 'hono'
import type { PrincipalVariables, RouteVariables } from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import type { PolicyRoute } from '../../policy/policy.ts'
import type { CorsRules } from './rules.ts'

export interface PreflightOptions {
  readonly route: PolicyRoute
  /** Undefined: preflight requests for the route continue with the next handler. */
  readonly rules: CorsRules | undefined
  /** Guards of a preflight request, such as `admit`. */
  readonly guards: MiddlewareHandler
}

/**
 * Answers preflight requests for one route with 204, without calling the origin. The caller is
 * anonymous, because browsers send no credentials. Other requests, and those for a route that an
 * earlier handler has matched, continue with the next handler. A page that may not read responses
 * gets 204 without CORS headers; `cors` adds the origin for the others.
 *
 * Must be registered for OPTIONS in the order of the routes, after `clientAddress`.
 */
export const preflight = ({ route, rules, guards }: PreflightOptions) =>
  createMiddleware<{ Variables: Partial<RouteVariables> & PrincipalVariables }>(
    async function preflight(c, next) {
      const received = receivedHeaders(c)
      const isMatched = c.get('portcullis.route') !== undefined
      if (isMatched || !isPreflightFor(route, received)) return next()
      c.set('portcullis.route', route)
      c.set('portcullis.principal', null)
      if (rules === undefined) return next()
      await guards(c, async () => {
        const headers = new Headers()
        const isPrivateNetwork = received.get('access-control-request-private-network') === 'true'
        const method = received.get('access-control-request-method') ?? route.method
        if (rules.allows(received.get('origin')))
          for (const [name, value] of rules.ofPreflight(method, isPrivateNetwork))
            headers.set(name, value)
        c.res = new Response(null, { status: 204, headers })
      })
    },
  )

/** Whether a page intends to send a request of this route. HEAD is treated as GET. */
function isPreflightFor({ method }: PolicyRoute, received: ReadonlyMap<string, string>): boolean {
  const intended = received.get('access-control-request-method')
  if (intended === undefined || !received.has('origin')) return false
  return intended === method || (intended === 'HEAD' && method === 'GET')
}
