/** Finds routes of a policy that an origin could confuse, although the router does not. */
import { listReadings, type Reading } from '../http/path-reading.ts'
import type { Mistake } from '../problems/mistake.ts'
import { createPathIndex, type PathIndex } from './path-index.ts'
import type { PolicyRoute } from './route.ts'

/** A route that an origin could select for requests of another route. */
export interface LookAlike {
  readonly path: string
  readonly readings: readonly Reading[]
}

interface Candidate extends LookAlike {
  readonly route: PolicyRoute
  /** Whether the origin could select it for every request of the other route. */
  readonly isCertain: boolean
}

const INPUTS = ['params', 'query', 'headers', 'body'] as const

/** The index of a table, which does not change: it is searched for each of its routes. */
const indices = new WeakMap<readonly PolicyRoute[], PathIndex<PolicyRoute>>()

function indexPaths(routes: readonly PolicyRoute[]): PathIndex<PolicyRoute> {
  const known = indices.get(routes)
  if (known !== undefined) return known
  const index = createPathIndex(routes)
  indices.set(routes, index)
  return index
}

/**
 * Returns the routes that an origin could select for requests of `route`, and that have a
 * requirement which `route` does not have. HEAD follows GET in both. Most routes have none.
 * The array `routes` contains `route`, and must not change after the first call.
 */
export function findLookAlikes(
  route: PolicyRoute,
  routes: readonly PolicyRoute[],
): readonly Candidate[] {
  const similar = indexPaths(routes).similarTo(route)
  const own = similar.findIndex(([, other]) => other === route)
  return similar.flatMap(([, other], at) => {
    if (other === route || other.origin !== route.origin || !shareHosts(other, route)) return []
    if (requiresAsMuch(route, other)) return []
    const readings = listReadings(route.path, other.path, other.originSpelling ?? 'loose', at > own)
    const isCertain = readings.some(({ chance }) => chance === 'always')
    return readings.length === 0 ? [] : [{ path: other.path, readings, route: other, isCertain }]
  })
}

/** Returns a mistake for each pair of routes of which one would refuse every request, by route. */
export function mistakesInSpelling(
  routes: readonly PolicyRoute[],
): ReadonlyMap<PolicyRoute, Mistake> {
  const mistakes = new Map<PolicyRoute, Mistake>()
  for (const route of routes) {
    for (const { route: other, path, isCertain } of findLookAlikes(route, routes)) {
      if (!isCertain || mistakes.has(other)) continue
      mistakes.set(route, {
        code: 'confusable_route',
        path: ['path'],
        message:
          `an origin could confuse it with ${path}, which has other ` +
          "requirements; give both the same requirements, or set originSpelling: 'exact' on both " +
          'if the origin distinguishes them',
        route: { method: route.method, path: route.path },
      })
    }
  }
  return mistakes
}

/** Reports whether two routes may have a host in common. A pattern counts as every host. */
const shareHosts = ({ host = '*' }: PolicyRoute, { host: other = '*' }: PolicyRoute): boolean =>
  host === other || `${host}${other}`.includes('*')

/** Reports whether `other` would admit every request that `route` admits. */
function requiresAsMuch(route: PolicyRoute, other: PolicyRoute): boolean {
  const isSame = (key: (typeof INPUTS)[number]) =>
    other.input[key] === undefined || other.input[key] === route.input[key]
  const readsParameters = other.relation !== undefined || other.input.params !== undefined
  return (
    requiresPermission(route, other) &&
    (other.relation === undefined || isEqual(other.relation, route.relation)) &&
    (!readsParameters || parametersIn(route.path) === parametersIn(other.path)) &&
    other.limits.every(({ name }) => route.limits.some((limit) => limit.name === name)) &&
    INPUTS.every(isSame) &&
    (other.inspect === undefined || other.inspect === route.inspect) &&
    route.maxBodyBytes <= other.maxBodyBytes &&
    (route.dpop || !other.dpop) &&
    requiresSession(route, other) &&
    (other.authentication === undefined || isEqual(route.authentication, other.authentication)) &&
    route.webSocketOrigins.every((origin) => other.webSocketOrigins.includes(origin)) &&
    forwardsAsMuch(other.forwardAuthorization, route.forwardAuthorization) &&
    (other.forwardCookies || !route.forwardCookies)
  )
}

/** A route without sessions accepts only tokens, which a route with sessions accepts too. */
const requiresSession = ({ session }: PolicyRoute, other: PolicyRoute): boolean =>
  other.permission === undefined || session === other.session || session === undefined

/** Reports whether a route forwards every credential that another one forwards. */
function forwardsAsMuch(
  one: PolicyRoute['forwardAuthorization'],
  another: PolicyRoute['forwardAuthorization'],
): boolean {
  if (one === another || another === false) return true
  if (typeof one === 'boolean' || another === true) return false
  const forwarded = one.map((scheme) => scheme.toLowerCase())
  return another.every((scheme) => forwarded.includes(scheme.toLowerCase()))
}

function requiresPermission(route: PolicyRoute, other: PolicyRoute): boolean {
  if (other.permission === undefined) return true
  if (other.permissionMode === 'observe') return route.permission !== undefined
  return route.permission === other.permission && route.permissionMode !== 'observe'
}

const isEqual = (one: unknown, another: unknown) => JSON.stringify(one) === JSON.stringify(another)

/** Returns the parameters with their positions. */
const parametersIn = (pattern: string) =>
  pattern
    .split('/')
    .map((segment) => (segment.startsWith(':') ? segment : ''))
    .join('/')
    .replace(/(?<!\/)\/+$/, '')
