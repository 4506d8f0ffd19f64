/** Audiences of tokens (RFC 8707 section 2, RFC 8693 section 2.1), and the resources that they name. */

import { isResourceOf, narrowedTo, pathOf, withGateway } from '../../access/tokens/narrowed.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { coversHost, hostOf } from '../../http/host.ts'
import type { OAuthForm } from './form.ts'

export interface AudienceBounds {
  /** The gateway's public URL. */
  readonly issuer: string
  /** Audiences that the client may name, each for itself. Undefined: the client sets no bound. */
  readonly permitted: readonly string[] | undefined
  /**
   * The audiences of the token, session or consent that the new token comes from. Undefined: it does
   * not come from one of the gateway.
   */
  readonly held: readonly string[] | undefined
  /** Reports whether a route of the policy is at a path or below it. */
  readonly isRoute: (path: string) => boolean
}

/**
 * Returns the audiences of a token: the values of `resource` and `audience`. If the request has
 * neither, returns the audiences that `held` and `permitted` both allow, or without `held` the first
 * of `permitted`. A path of the gateway is narrower than the gateway, and a path below it is narrower
 * again. The result is never wider than `held`. Names are compared exactly, except the scheme and the
 * authority of the gateway's own URL in a resource. Throws `Denied` (`invalid_target`) for any other name, and for a resource that is
 * not an absolute URI or has a fragment.
 */
export function grantedAudiences(form: OAuthForm, bounds: AudienceBounds): readonly string[] {
  const { issuer, permitted, held, isRoute } = bounds
  const given = form.all('resource')
  if (!given.every(isResource)) throw oauthRefused('invalid_target', 'resource_malformed')
  const isRegistered = (name: string) => permitted?.includes(name) ?? held?.includes(name) ?? false
  const resources = given.map((name) =>
    isRegistered(name) ? name : canonicalResource(name, issuer),
  )
  const named = [...new Set([...resources, ...form.all('audience')])]
  const isPermitted = (name: string) =>
    permitted === undefined ||
    permitted.includes(name) ||
    permitted.some((other) => isBelow(name, other, issuer))
  const isKnown = (name: string) => {
    const path = isRegistered(name) ? undefined : pathOf(name, issuer)
    return path === undefined || isRoute(path)
  }
  const wanted = named.length > 0 ? named : selectDefault(bounds, isPermitted)
  const audiences = withGateway(wanted, issuer)
  const isGranted =
    wanted.length > 0 &&
    wanted.every((name) => isPermitted(name) && isKnown(name)) &&
    (held === undefined || isWithinAudiences(audiences, held, issuer))
  if (!isGranted) throw oauthRefused('invalid_target', 'target_exceeded')
  return audiences
}

function selectDefault(
  { issuer, permitted, held }: AudienceBounds,
  isPermitted: (name: string) => boolean,
): readonly string[] {
  if (held === undefined) return permitted?.slice(0, 1) ?? []
  const isHeld = (name: string) => isWithinAudiences(withGateway([name], issuer), held, issuer)
  const common = [...new Set([...held.filter(isPermitted), ...(permitted ?? []).filter(isHeld)])]
  // All paths: the names of some of them would narrow it.
  const isWhole = isHeld(issuer) && common.includes(issuer)
  return isWhole ? common.filter((name) => pathOf(name, issuer) === undefined) : common
}

/**
 * Reports whether a token with `audiences` is accepted only where one with `held` is. Each is read as
 * a whole: a list that names a path of the gateway is not for the other paths.
 */
function isWithinAudiences(
  audiences: readonly string[],
  held: readonly string[],
  issuer: string,
): boolean {
  const isWhole = (names: readonly string[]) => narrowedTo(names, issuer) === undefined
  return audiences.every((name) => {
    if (name === issuer) return held.includes(issuer) && (isWhole(held) || !isWhole(audiences))
    if (held.includes(name)) return true
    if (!held.includes(issuer)) return false
    const narrower = isWhole(held) ? [issuer] : held.filter((other) => isResourceOf(other, issuer))
    return narrower.some((other) => isBelow(name, other, issuer))
  })
}

/** Reports whether a name is a path of the gateway, below the gateway or another path of it. */
const isBelow = (name: string, other: string, issuer: string): boolean =>
  pathOf(name, issuer) !== undefined &&
  (other === issuer || (isResourceOf(other, issuer) && name.startsWith(`${other}/`)))

/**
 * Returns a function that finds the routes at a path of the gateway and below it. A route for another
 * host than that of the gateway's URL is at none.
 */
export function routesAt<
  Route extends { readonly path: string; readonly host?: string | undefined },
>(routes: readonly Route[], issuer: string): (path: string) => readonly Route[] {
  const rows = routes
    .filter(({ host }) => coversHost(host, hostOf(issuer)))
    .map((route) => ({ segments: segmentsOf(route.path), route }))
  return (path) => {
    const segments = segmentsOf(path)
    return rows.filter((row) => isAtOrBelow(row.segments, segments)).map(({ route }) => route)
  }
}

const segmentsOf = (path: string): readonly string[] => path.split('/').slice(1)

/** Reports whether every path of a pattern that can match is at the path or below it. */
function isAtOrBelow(pattern: readonly string[], path: readonly string[]): boolean {
  return path.every((segment, at) => segment !== '' && pattern[at] === segment)
}

/**
 * Returns a resource of the gateway as its URL begins, and any other one unchanged. The case of scheme and
 * host, the default port and an empty path make no difference (RFC 3986 sections 6.2.2.1 and 6.2.3): clients
 * may write the URL as `new URL()` does, with a slash.
 */
export function canonicalResource(name: string, issuer: string): string {
  const [root, path] = partsOf(name)
  if (root === undefined || root !== partsOf(issuer)[0]) return name
  return path === '/' ? issuer : issuer + path
}

const PARTS = /^(https?):\/\/([a-z\d._-]+|\[[\da-f:.]+\])(?::(\d+))?(\/.*)?$/i
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/** Returns scheme and authority, and the path and query. Empty for texts that `new URL()` would repair. */
function partsOf(text: string): readonly [root?: string, path?: string] {
  const [, scheme = '', host, port, path = ''] = PARTS.exec(text) ?? []
  if (host === undefined) return []
  const isDefault = port === undefined || port === DEFAULT_PORTS[scheme.toLowerCase()]
  return [`${scheme}://${host}`.toLowerCase() + (isDefault ? '' : `:${port}`), path]
}

/** RFC 8707 section 2: absolute (RFC 3986 section 4.3), and no fragment. */
export function isResource(text: string): boolean {
  return URL.canParse(text) && !text.includes('#')
}
