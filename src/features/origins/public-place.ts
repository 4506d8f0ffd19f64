/** Where a path that an origin names is found at the gateway: the inverse of `routeTarget`. */
import { coversHost } from '../../http/host.ts'
import { expandOptional } from '../../http/path-pattern.ts'
import type { PublicPlace } from '../../origin/public-location.ts'

/** The part of a route that decides which path an origin receives. */
export interface PlacedRoute {
  readonly path: string
  readonly host?: string | undefined
  readonly stripPrefix?: string | undefined
  readonly rewrite?: string | undefined
}

type Inverse = (segments: readonly string[]) => readonly string[] | undefined

/**
 * Creates the function that returns the place of a path of an origin, in the response to a request of
 * `own`. The first route of this origin whose requests reach the path decides, `own` before the others.
 * Without one, the path has the prefix that `own` strips.
 */
export function createPublicPlaces(
  own: PlacedRoute,
  routes: readonly PlacedRoute[],
): (path: string) => PublicPlace {
  const candidates = [own, ...routes.filter((route) => route !== own)].flatMap((route) => {
    const isOwnHost = coversHost(route.host, own.host)
    // A wildcard is the host of no URL.
    if (!isOwnHost && route.host?.startsWith('*')) return []
    const host = isOwnHost ? undefined : route.host
    return invertRewrites(route).map((inverse) => ({ host, inverse }))
  })
  return function placeOf(path) {
    const segments = segmentsOf(path)
    for (const { host, inverse } of candidates) {
      const found = inverse(segments)
      if (found !== undefined) return { path: `/${found.join('/')}`, host }
    }
    return { path: (own.stripPrefix ?? '') + path }
  }
}

function invertRewrites({ path, stripPrefix, rewrite }: PlacedRoute): readonly Inverse[] {
  return expandOptional(path).map((variant) => {
    const pattern = segmentsOf(variant)
    const stripped = stripPrefix === undefined ? 0 : segmentsOf(stripPrefix).length
    const target = rewrite === undefined ? pattern.slice(stripped) : segmentsOf(rewrite)
    return (segments) => filled(pattern, valuesIn(target, segments))
  })
}

/** Returns the values of the parameters of a pattern, and those of `*`. Undefined: it does not match. */
function valuesIn(
  target: readonly string[],
  segments: readonly string[],
): ReadonlyMap<string, readonly string[]> | undefined {
  const values = new Map<string, readonly string[]>()
  for (const [at, token] of target.entries()) {
    const segment = segments[at]
    if (token === '*') return values.set(token, segments.slice(at))
    const name = nameOf(token)
    if (segment === undefined || (name === undefined ? segment !== token : segment === ''))
      return undefined
    if (name !== undefined) values.set(name, [segment])
  }
  return target.length === segments.length ? values : undefined
}

function filled(
  pattern: readonly string[],
  values: ReadonlyMap<string, readonly string[]> | undefined,
): readonly string[] | undefined {
  if (values === undefined) return undefined
  const path: string[] = []
  for (const token of pattern) {
    const found = token === '*' ? values.get(token) : values.get(nameOf(token) ?? '')
    if (found !== undefined) path.push(...found)
    else if (nameOf(token) === undefined && token !== '*') path.push(token)
    else return undefined
  }
  return path
}

const nameOf = (token: string): string | undefined => /^:(\w+)/.exec(token)?.[1]
const segmentsOf = (path: string): string[] => path.split('/').slice(1)
