/** The demands of a route for the login of its callers: `authentication`, and its older form in `session`. */
import { type Mistake, mistakeAt } from '../problems/mistake.ts'
import type { AuthenticationDemand, RouteDefinition } from './definition.ts'

type Demands = Pick<RouteDefinition, 'authentication' | 'session'>

const FIELDS = ['acr', 'maxAgeSeconds'] as const

const aliasOf = ({ session }: Demands): AuthenticationDemand =>
  typeof session === 'object' && session !== null ? session : {}

/** Returns the demand of a route. Undefined: it has none. */
export function authenticationOf(route: Demands): AuthenticationDemand | undefined {
  const { authentication: own = {} } = route
  const alias = aliasOf(route)
  const acr = own.acr ?? alias.acr
  const maxAgeSeconds = own.maxAgeSeconds ?? alias.maxAgeSeconds
  if (acr === undefined && maxAgeSeconds === undefined) return undefined
  return {
    ...(acr !== undefined && { acr }),
    ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
  }
}

/** Yields the mistakes of a row, with paths relative to it. */
export function* mistakesInAuthentication(
  route: Demands & Pick<RouteDefinition, 'anonymous'>,
): Generator<Mistake> {
  const { authentication, anonymous } = route
  if (authentication === undefined) return
  if (anonymous)
    yield mistakeAt(
      'conflict',
      ['authentication'],
      'authentication cannot be combined with anonymous, because anonymous callers have no login',
    )
  const alias = aliasOf(route)
  for (const field of FIELDS)
    if (
      alias[field] !== undefined &&
      authentication[field] !== undefined &&
      JSON.stringify(alias[field]) !== JSON.stringify(authentication[field])
    )
      yield mistakeAt(
        'conflict',
        ['authentication', field],
        `authentication.${field} and session.${field} differ; set session: 'browser'`,
      )
}
