/** Role-based permissions: maps roles to permissions. Denies by default. */
import type { Principal } from '../identity/principal.ts'

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

export type Authorizer = (principal: Principal, permission: string) => boolean

/**
 * Creates the authorizer for the roles of a policy.
 *
 * - Roles grant the permissions that the policy lists for them. An unknown role grants nothing.
 *   Role names are looked up in a Map, so `constructor` is an unknown role too.
 * - Scopes that name permissions (those with a `:`, so not `openid`) narrow the roles: a token with
 *   roles and such scopes has only the permissions that both cover (RFC 9068 section 5, least
 *   privilege).
 * - A token without roles has the permissions that its scopes name, because its issuer granted
 *   them.
 */
export function createAuthorizer(roles: Roles): Authorizer {
  const sets = compiled(roles)
  /** For as long as the token is cached. Null: no scope names a permission. */
  const scopeSets = new WeakMap<Principal, PermissionSet | null>()

  function scopeSetOf(principal: Principal): PermissionSet | null {
    let set = scopeSets.get(principal)
    if (set === undefined) {
      const scopes = principal.scopes.filter((scope) => scope.includes(':'))
      set = scopes.length === 0 ? null : permissionSet(scopes)
      scopeSets.set(principal, set)
    }
    return set
  }

  return function isPermitted(principal, permission) {
    const scopes = scopeSetOf(principal)
    if (principal.roles.length === 0) return scopes?.covers(permission) === true
    const byRole = principal.roles.some((role) => sets.get(role)?.covers(permission) === true)
    return byRole && (scopes === null || scopes.covers(permission))
  }
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
