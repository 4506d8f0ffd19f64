/** Computes the scope of a token (RFC 6749 section 3.3): the requested one, within every bound. */
import { oauthRefused } from '../../access/tokens/rejection.ts'

const SCOPE_NAME = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
/** More names than any token should have. */
const MAX_NAMES = 100

/**
 * Returns the part of a scope that roles grant: `[name]` if the roles grant all of it. For a
 * pattern that they grant in part, returns their narrower names. Else returns an empty array.
 */
export type ScopeOfRoles = (roles: readonly string[], name: string) => readonly string[]

export interface ScopeBounds {
  /** The scopes of the client or of the session. Undefined: no such bound. */
  readonly bound: readonly string[] | undefined
  /**
   * The scopes that were granted to the token's subject: those of the subject token, of the
   * session, or of a client that requests a token for itself. Undefined: no scopes were granted.
   */
  readonly held: readonly string[] | undefined
  /** Roles of the token. Scopes narrow them. */
  readonly roles: readonly string[]
  readonly scopeOfRoles: ScopeOfRoles
}

/**
 * Returns the scope to grant. If `requested` is set, this is exactly the requested scope. Otherwise
 * it is everything that both `bound` and `held` allow. With roles, its permissions (names with a
 * `:`) are reduced to those that the roles grant. Scopes narrow permissions and never widen them.
 * Throws `Denied` (`invalid_scope`) for:
 *
 * - anything beyond `bound` or `held`. If both are undefined, only permissions may be requested:
 *   the client could invent any other name, and origins would trust it.
 * - permissions that the roles do not grant. Without roles, permissions that `held` does not
 *   contain: a bound of the client limits its tokens, but grants nothing to a subject.
 * - a scope without permissions if `bound` or `held` has some: the roles would no longer be
 *   narrowed.
 * - an empty scope if `bound` or `held` is not empty.
 */
export function grantedScope(
  requested: string | undefined,
  bounds: ScopeBounds,
): readonly string[] {
  const { bound, held, roles, scopeOfRoles } = bounds
  const limits = [bound, held].filter((limit) => limit !== undefined)
  const names = requested === undefined ? undefined : namesIn(requested)
  const ofRoles = (name: string) =>
    roles.length > 0 && isPermission(name) ? scopeOfRoles(roles, name) : [name]
  if (names?.every((name) => mayRequest(name, bounds)) === false)
    throw oauthRefused('invalid_scope', 'scope_exceeded')
  if (names?.every((name) => ofRoles(name).includes(name)) === false)
    throw oauthRefused('invalid_scope', 'scope_beyond_roles')
  const granted = names ?? [...new Set(intersect(limits).flatMap(ofRoles))]
  if (!granted.some(isPermission) && limits.some((limit) => limit.some(isPermission)))
    throw oauthRefused('invalid_scope', 'scope_unbounded')
  if (granted.length === 0 && limits.some((limit) => limit.length > 0))
    throw oauthRefused('invalid_scope', 'scope_empty')
  const isGranted = (name: string) => !isPermission(name) || isWithin(name, held ?? [])
  if (roles.length === 0 && !granted.every(isGranted))
    throw oauthRefused('invalid_scope', 'scope_ungranted')
  return granted
}

/**
 * Reports whether a client may request a name. If the scopes of a login contain no permission, only
 * its roles bound it, as at the gateway.
 */
function mayRequest(name: string, { bound, held }: ScopeBounds): boolean {
  if (bound !== undefined) return isWithin(name, bound) && (!held || isWithin(name, held))
  if (held?.some(isPermission)) return isWithin(name, held)
  return isPermission(name) || held?.includes(name) === true
}

/** Returns what every limit allows. Of two patterns, the narrower one is returned. */
function intersect([first = [], ...others]: readonly (readonly string[])[]): readonly string[] {
  return others.reduce(
    (names, limit) => [
      ...names.filter((name) => isWithin(name, limit)),
      ...limit.filter((name) => isWithin(name, names)),
    ],
    first,
  )
}

/** Reports whether one of `names` equals `name`, or is a pattern (`orders:*`) that covers it. */
export function isWithin(name: string, names: readonly string[]): boolean {
  return names.some(
    (other) => other === name || (other.endsWith(':*') && name.startsWith(other.slice(0, -1))),
  )
}

/** Ignores empty names, as in a token: some clients write two spaces, or one at an end. */
export function namesIn(scope: string): readonly string[] {
  const names = scope.split(' ').filter(Boolean)
  if (!names.length || names.length > MAX_NAMES || !names.every((name) => SCOPE_NAME.test(name)))
    throw oauthRefused('invalid_scope', 'scope_malformed')
  return [...new Set(names)]
}

export function isPermission(name: string): boolean {
  return name.includes(':')
}
