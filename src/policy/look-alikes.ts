/** Finds routes of a policy that an origin could confuse, although the router does not. */
import { type Reading, readingsOf } from '../http/path-reading.ts'
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

const PLAIN = /^[\w-]+$/
const INPUTS = ['params', 'query', 'headers', 'body'] as const

/**
 * Returns the routes that an origin could select for requests of `route`, and that have a
 * requirement which `route` does not have. HEAD follows GET in both. Most routes have none.
 */
export function lookAlikesOf(
  route: PolicyRoute,
  routes: readonly PolicyRoute[],
): readonly Candidate[] {
  const own = routes.indexOf(route)
  const names = namesOf(route)
  return routes.flatMap((other, at) => {
    if (other === route || other.method !== route.method) return []
    if (other.origin !== route.origin || !shareHosts(other, route)) return []
    if (areApart(names, namesOf(other)) || requiresAsMuch(route, other)) return []
    const readings = readingsOf(route.path, other.path, other.originSpelling ?? 'loose', at > own)
    const isCertain = readings.some(({ chance }) => chance === 'always')
    return readings.length === 0 ? [] : [{ path: other.path, readings, route: other, isCertain }]
  })
}

/** Returns a mistake for each pair of routes of which one would refuse every request, by route. */
export function mistakesInSpelling(
  routes: readonly PolicyRoute[],
): ReadonlyMap<PolicyRoute, string> {
  const mistakes = new Map<PolicyRoute, string>()
  for (const route of routes) {
    for (const { route: other, path, isCertain } of lookAlikesOf(route, routes)) {
      if (!isCertain || mistakes.has(other)) continue
      mistakes.set(
        route,
        `${route.method} ${route.path}: an origin could confuse it with ${path}, which has other ` +
          "requirements; give both the same requirements, or set originSpelling: 'exact' on both " +
          'if the origin distinguishes them',
      )
    }
  }
  return mistakes
}

/** Reports whether two routes may have a host in common. A pattern counts as every host. */
const shareHosts = ({ host = '*' }: PolicyRoute, { host: other = '*' }: PolicyRoute): boolean =>
  host === other || `${host}${other}`.includes('*')

/** Reports whether two patterns differ in a plain segment, so that no origin can confuse them. */
function areApart(one: readonly string[], another: readonly string[]): boolean {
  return one.some((name, at) => {
    const other = another[at]
    return name !== '' && other !== undefined && other !== '' && name !== other
  })
}

/** A policy compares each route with all others. */
const namesOfRoutes = new WeakMap<PolicyRoute, readonly string[]>()

/** Returns the segments of a path, in lower case. Empty for those that are not plain. */
function namesOf(route: PolicyRoute): readonly string[] {
  const known = namesOfRoutes.get(route)
  if (known !== undefined) return known
  const segments = route.path.toLowerCase().split('/')
  const names = segments.map((name) => (PLAIN.test(name) ? name : ''))
  namesOfRoutes.set(route, names)
  return names
}

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
    route.webSocketOrigins.every((origin) => other.webSocketOrigins.includes(origin)) &&
    (other.forwardAuthorization || !route.forwardAuthorization) &&
    (other.forwardCookies || !route.forwardCookies)
  )
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
    .replace(/\/+$/, '')
