/** Adds the gateway's own credentials to the requests of origins. */
import type { CredentialParts, OriginCredentials } from '../origin/credentials.ts'
import type { Origin } from '../origin/origin.ts'
import type { Policy } from '../policy/policy.ts'
import { nameOfRoute } from '../policy/route.ts'
import type { Connections } from './core.ts'

type Authorize = NonNullable<Connections['authorize']>

/** Creates the function that adds credentials. All origins with the same ones share what is fetched for them. */
export function createAuthorize(parts: CredentialParts): Authorize {
  const known = new Map<OriginCredentials, (origin: Origin) => Origin>()
  return function authorize(credentials) {
    const add = known.get(credentials) ?? credentials.connect(parts)
    known.set(credentials, add)
    return add
  }
}

/** Wraps an origin for the routes that have credentials of their own. */
export function authorizedOrigin(
  origin: Origin,
  routes: Policy['routes'],
  authorize: Authorize,
): Origin {
  const own = new Map(
    routes.flatMap((route) =>
      route.credentials ? [[nameOfRoute(route), authorize(route.credentials)(origin)]] : [],
    ),
  )
  if (own.size === 0) return origin
  return { send: (request) => (own.get(request.route ?? '') ?? origin).send(request) }
}
