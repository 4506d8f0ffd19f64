/** Which scope a token gets (RFC 6749 section 3.3): what is asked for, within every bound. */
import { oauthRefused } from './refusal.ts'

const SCOPE_NAME = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
/** More than any token should carry. */
const MAX_NAMES = 100

/** Who may get how much. */
export interface ScopeBounds {
  /**
   * Each names the most there can be: the client's scopes, those of the subject token, those of the
   * session. Undefined: no bound of that kind.
   */
  readonly bounds: readonly (readonly string[] | undefined)[]
  /** Roles of the token: what scopes narrow. */
  readonly roles: readonly string[]
  /**
   * The one bound that somebody has granted to the token's subject: scopes of the subject token, of
   * the session, of a client that asks for itself. Undefined: nobody granted any.
   */
  readonly granted: readonly string[] | undefined
}

/**
 * The scope to grant for what `requested` says: exactly that, or all that every bound allows where
 * it says nothing. Throws `Denied` (`invalid_scope`) for anything beyond a bound. Also refused is
 * what would grant more than it says, because scopes that name permissions (those with a `:`) narrow
 * roles, and grant by themselves where there are none:
 *
 * - a scope without permissions where a bound has some: roles would no longer be narrowed at all;
 * - permissions without roles that were not granted to the subject: a bound of the client says how
 *   much its tokens may have, not that everybody has it.
 */
export function grantedScope(
  requested: string | undefined,
  { bounds, roles, granted: grantedBefore = [] }: ScopeBounds,
): readonly string[] {
  const limits = bounds.filter((bound) => bound !== undefined)
  const asked = requested === undefined ? undefined : namesIn(requested)
  const [first, ...others] = limits
  const granted =
    asked ?? (first ?? []).filter((name) => others.every((bound) => bound.includes(name)))
  if (!granted.every((name) => limits.every((bound) => bound.includes(name))))
    throw oauthRefused('invalid_scope', 'scope_exceeded')
  const named = granted.some(isPermission)
  if (!named && limits.some((bound) => bound.some(isPermission)))
    throw oauthRefused('invalid_scope', 'scope_unbounded')
  if (granted.length === 0 && limits.some((bound) => bound.length > 0))
    throw oauthRefused('invalid_scope', 'scope_empty')
  const isGranted = (name: string) => !isPermission(name) || grantedBefore.includes(name)
  if (roles.length === 0 && !granted.every(isGranted))
    throw oauthRefused('invalid_scope', 'scope_ungranted')
  return granted
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
