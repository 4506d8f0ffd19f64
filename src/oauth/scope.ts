/** Which scope a token gets (RFC 6749 section 3.3): what is asked for, within every bound. */
import { oauthRefused } from '../tokens/oauth-refusal.ts'

const SCOPE_NAME = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
/** More than any token should carry. */
const MAX_NAMES = 100

/**
 * What of a scope's name some roles grant: `[name]` where it is all of it; of a pattern, else, the
 * narrower ones that they have; else nothing.
 */
export type ScopeOfRoles = (roles: readonly string[], name: string) => readonly string[]

/** Who may get how much. */
export interface ScopeBounds {
  /** The most there can be: scopes of the client, or of the session. Undefined: no such bound. */
  readonly bound: readonly string[] | undefined
  /**
   * What somebody has granted to the token's subject: scopes of the subject token, of the session, of
   * a client that asks for itself. Undefined: nobody granted any.
   */
  readonly held: readonly string[] | undefined
  /** Roles of the token: what scopes narrow. */
  readonly roles: readonly string[]
  readonly scopeOfRoles: ScopeOfRoles
}

/**
 * The scope to grant for what `requested` says: exactly that; or, where it says nothing, all that
 * `bound` and `held` both allow, and of its permissions (names with a `:`) those that the roles
 * grant. Scopes narrow and never widen, so `Denied` (`invalid_scope`) is thrown for
 *
 * - anything beyond `bound` or `held`. Where there is neither, only permissions may be asked for: any
 *   other word would be the client's own, and origins would take it for granted;
 * - permissions that the roles do not grant, or, without roles, that nobody granted to the subject: a
 *   bound of the client says how much its tokens may have, not that everybody has it;
 * - a scope without permissions where `bound` or `held` has some: roles would no longer be narrowed.
 */
export function grantedScope(
  requested: string | undefined,
  bounds: ScopeBounds,
): readonly string[] {
  const { bound, held, roles, scopeOfRoles } = bounds
  const limits = [bound, held].filter((limit) => limit !== undefined)
  const asked = requested === undefined ? undefined : namesIn(requested)
  const ofRoles = (name: string) =>
    roles.length > 0 && isPermission(name) ? scopeOfRoles(roles, name) : [name]
  if (asked?.every((name) => mayAsk(name, bounds)) === false)
    throw oauthRefused('invalid_scope', 'scope_exceeded')
  if (asked?.every((name) => ofRoles(name).includes(name)) === false)
    throw oauthRefused('invalid_scope', 'scope_beyond_roles')
  const granted = asked ?? [...new Set(meetOf(limits).flatMap(ofRoles))]
  if (!granted.some(isPermission) && limits.some((limit) => limit.some(isPermission)))
    throw oauthRefused('invalid_scope', 'scope_unbounded')
  if (granted.length === 0 && limits.some((limit) => limit.length > 0))
    throw oauthRefused('invalid_scope', 'scope_empty')
  const isGranted = (name: string) => !isPermission(name) || isWithin(name, held ?? [])
  if (roles.length === 0 && !granted.every(isGranted))
    throw oauthRefused('invalid_scope', 'scope_ungranted')
  return granted
}

/** A login whose scopes name no permission is bounded by its roles alone, as at the gateway. */
function mayAsk(name: string, { bound, held }: ScopeBounds): boolean {
  if (bound !== undefined) return isWithin(name, bound) && (!held || isWithin(name, held))
  if (held?.some(isPermission)) return isWithin(name, held)
  return isPermission(name) || held?.includes(name) === true
}

/** What every limit allows: of two patterns the narrower one. */
function meetOf([first = [], ...others]: readonly (readonly string[])[]): readonly string[] {
  return others.reduce(
    (names, limit) => [
      ...names.filter((name) => isWithin(name, limit)),
      ...limit.filter((name) => isWithin(name, names)),
    ],
    first,
  )
}

/** Whether one of `names` is this one, or a pattern (`orders:*`) that has it below it. */
function isWithin(name: string, names: readonly string[]): boolean {
  return names.some(
    (other) => other === name || (other.endsWith(':*') && name.startsWith(other.slice(0, -1))),
  )
}

function namesIn(scope: string): readonly string[] {
  const names = scope.split(' ')
  if (names.length > MAX_NAMES || !names.every((name) => SCOPE_NAME.test(name)))
    throw oauthRefused('invalid_scope', 'scope_malformed')
  return [...new Set(names)]
}

function isPermission(name: string): boolean {
  return name.includes(':')
}
