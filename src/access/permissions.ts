/** Role-based permissions: maps roles to permissions. Denies by default. */
import { attached } from '../isolate/attached.ts'
import type { Principal } from './principal.ts'

/**
 * A compiled set of permission patterns: `orders:read` covers itself, `orders:*` covers everything
 * below `orders:` at any depth, and `*` covers everything. Case-sensitive.
 */
export interface PermissionSet {
  covers(permission: string): boolean
}

/** Compiles patterns. An invalid pattern (`orders`, `:`, an empty string) covers no permission. */
export function permissionSet(patterns: Iterable<string>): PermissionSet {
  const exact = new Set<string>()
  const below = new Set<string>()
  let everything = false
  for (const pattern of patterns) {
    if (pattern === '*') everything = true
    else if (pattern.endsWith(':*')) below.add(pattern.slice(0, -1))
    else exact.add(pattern)
  }
  return {
    covers(permission) {
      if (everything || exact.has(permission)) return true
      for (let at = permission.indexOf(':'); at > 0; at = permission.indexOf(':', at + 1)) {
        if (below.has(permission.slice(0, at + 1))) return true
      }
      return false
    },
  }
}

type Roles = ReadonlyMap<string, readonly string[]>

function compiled(roles: Roles): ReadonlyMap<string, PermissionSet> {
  return new Map([...roles].map(([role, patterns]) => [role, permissionSet(patterns)]))
}

export interface Authorizer {
  (principal: Principal, permission: string): boolean
  /** Adds permissions that scopes can name. `authorize` adds those that routes require. */
  declare?(permissions: Iterable<string>): void
}

export interface PolicyAuthorizer extends Authorizer {
  declare(permissions: Iterable<string>): void
  /**
   * Reports that the policy has permissions that are not declared yet. From then on, every scope that a
   * permission can have as a name narrows, see {@link createAuthorizer}. `syntax` is that of permissions.
   */
  expectMore(syntax: RegExp): void
  /**
   * Returns the scopes that a token issued for this principal must stay within, so that it permits
   * no more than the principal. Undefined: only roles bound it. Scopes without a `:` are included.
   */
  scopesHeldBy(principal: Principal): readonly string[] | undefined
}

/**
 * Creates the authorizer for the roles of a policy.
 *
 * - Roles grant the permissions that the policy lists for them. An unknown role grants nothing.
 *   Role names are looked up in a Map, so `constructor` is an unknown role too.
 * - A scope names a permission if it has a `:`, so `openid` does not. The issuer of the token
 *   decides what scopes do (`scopeUse`):
 *   - `ignore`: nothing.
 *   - `grant`: they grant what they name, in addition to the roles.
 *   - `narrow`: scopes that name permissions of the policy narrow the roles: a token has only the
 *     permissions that both cover (RFC 9068 section 5, least privilege). Other scopes, such as
 *     `read:orders` for a policy with `orders:read`, do nothing, unless `expectMore` was called. A token without roles has the
 *     permissions that its scopes name, because its issuer granted them.
 *   - Without `scopeUse`, for credentials of the gateway itself: as `narrow`, but every scope with a
 *     `:` narrows.
 */
export function createAuthorizer(roles: Roles): PolicyAuthorizer {
  const sets = compiled(roles)
  const patterns = [...roles.values()].flat().filter((pattern) => pattern !== '*')
  const ofRoles = permissionSet(patterns)
  const declared = new Set(patterns)
  /** Of permissions that are not declared yet. Undefined: all are declared. */
  let later: RegExp | undefined
  /** For as long as the token is cached. */
  let scopeSets = attached<Principal, ScopeSets>()
  /** By scopes, which many tokens share. */
  const known = new Map<string, ScopeSets>()

  function namesPermissionOfPolicy(scope: string): boolean {
    if (ofRoles.covers(scope)) return true
    // A permission of a route that is not declared yet, or a pattern that covers one.
    if (later?.test(scope.replace(/:\*$/, ':x'))) return true
    const { covers } = permissionSet([scope])
    return [...declared].some(covers)
  }

  function deriveScopeSets(principal: Principal): ScopeSets {
    const kept = scopeSets(principal)
    if (kept !== undefined) return kept
    const { scopes, scopeUse } = principal
    const isNarrow = scopeUse === 'narrow'
    const key = JSON.stringify([isNarrow, scopes])
    let found = known.get(key)
    if (found === undefined) {
      const named = scopes.filter((scope) => scope.includes(':'))
      const narrowing = isNarrow ? named.filter(namesPermissionOfPolicy) : named
      found = {
        granted: permissionSet(named),
        bound: narrowing.length === 0 ? undefined : permissionSet(narrowing),
      }
      if (known.size >= MAX_SCOPE_SETS) known.clear()
      known.set(key, found)
    }
    return scopeSets(principal, found)
  }

  function isPermitted(principal: Principal, permission: string): boolean {
    const { scopeUse } = principal
    const byRole = principal.roles.some((role) => sets.get(role)?.covers(permission) === true)
    if (scopeUse === 'ignore') return byRole
    if (byRole && scopeUse === 'grant') return true
    const { granted, bound } = deriveScopeSets(principal)
    if (scopeUse === 'grant' || principal.roles.length === 0) return granted.covers(permission)
    return byRole && bound?.covers(permission) !== false
  }

  function scopesHeldBy({ scopes, scopeUse, roles: held }: Principal) {
    if (scopeUse === 'ignore' || (scopeUse === 'grant' && held.length > 0)) return undefined
    // Without roles, each scope is a grant of the issuer.
    const allCount = scopeUse !== 'narrow' || held.length === 0
    const counts = (scope: string) =>
      allCount || !scope.includes(':') || namesPermissionOfPolicy(scope)
    const counted = scopes.filter(counts)
    return counted.length > 0 ? counted : undefined
  }

  function forgetScopeSets(): void {
    scopeSets = attached()
    known.clear()
  }

  return Object.assign(isPermitted, {
    scopesHeldBy,
    declare(permissions: Iterable<string>) {
      for (const permission of permissions) declared.add(permission)
      forgetScopeSets()
    },
    expectMore(syntax: RegExp) {
      later = syntax
      forgetScopeSets()
    },
  })
}

/** The longest tokens have 8 KB of scopes. */
const MAX_SCOPE_SETS = 100

interface ScopeSets {
  readonly granted: PermissionSet
  /** Undefined: no scope narrows the roles. */
  readonly bound: PermissionSet | undefined
}

/**
 * Creates a function that returns the part of a scope name that the given roles grant. If they
 * grant all of it, that is `[name]`. For a pattern, it is the roles' own patterns below it
 * (`orders:read` for `orders:*`). Otherwise it is empty.
 */
export function createScopeOfRoles(roles: Roles) {
  const sets = compiled(roles)
  return function scopeOfRoles(held: readonly string[], name: string): readonly string[] {
    if (held.some((role) => sets.get(role)?.covers(name) === true)) return [name]
    const below = permissionSet([name])
    const patterns = held.flatMap((role) => roles.get(role) ?? [])
    return [...new Set(patterns.filter((pattern) => below.covers(pattern)))]
  }
}
