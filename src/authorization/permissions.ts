/** Roles to permissions: who may do what, denied unless said otherwise. */
import type { Principal } from '../tokens/principal.ts'

/**
 * A set of permission patterns, compiled once: `orders:read` covers itself, `orders:*` everything
 * below `orders:` at any depth, `*` everything. Case counts.
 */
export interface PermissionSet {
  covers(permission: string): boolean
}

/** Compiles patterns. A pattern that is none (`orders`, `:`, an empty string) covers nothing. */
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

/** Answers whether a principal has a permission. */
export type Authorizer = (principal: Principal, permission: string) => boolean

/**
 * Makes the decision out of the policy's roles.
 *
 * - Roles grant what the policy lists for them; an unknown role grants nothing, and role names are
 *   looked up in a Map, so `constructor` is just an unknown role.
 * - Scopes that name permissions (those with a `:`, so not `openid`) narrow what the roles grant:
 *   a token with roles and such scopes has what both cover (RFC 9068 section 5, least privilege).
 * - A token without roles has what its scopes name, because its issuer granted them.
 */
export function createAuthorizer(roles: Roles): Authorizer {
  const sets = compiled(roles)
  /** Compiled once for each principal, which lives as long as its token is cached; null: none. */
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
 * Makes the answer to what of a scope's name some roles grant: `[name]` where it is all of it; of a
 * pattern, else, what the roles have below it (`orders:read` of `orders:*`); else nothing.
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
