/** Which callers a policy admits to which routes, decided by the authorizer of the gateway. */
import { type Authorizer, createAuthorizer } from '../../src/authorization/permissions.ts'
import type { Principal } from '../../src/identity/principal.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'
import { nameOfRoute } from '../../src/policy/route.ts'
import { limitInWords } from './words.ts'

export interface MatrixRow {
  /** `GET /orders/:id`. */
  readonly route: string
  readonly permission: string | null
  /** By caller: `anonymous`, `no role`, or a role. */
  readonly admits: Readonly<Record<string, boolean>>
  /** The relation that the caller needs as well: `order#viewer`. */
  readonly relation: string | null
  /** Rules that only observe: `permission`, `relation`. */
  readonly observed: readonly string[]
  readonly limits: readonly string[]
}

export interface Matrix {
  readonly callers: readonly string[]
  readonly rows: readonly MatrixRow[]
}

export const ANONYMOUS = 'anonymous'
export const NO_ROLE = 'no role'

/** Returns the caller that has these roles, and no scope. */
export const roleCaller = (roles: readonly string[]): Principal => ({
  issuer: '',
  tokenIssuer: '',
  subject: 'caller',
  client: undefined,
  tenant: undefined,
  session: undefined,
  roles,
  scopes: [],
  tokenId: undefined,
  tokenIdHash: undefined,
  confirmation: undefined,
  issuedAtSeconds: 0,
  expiresAtSeconds: 0,
})

/** Reports whether the permission of a route admits a caller. Null: anonymous. */
export function admits(
  { permission, permissionMode }: Pick<PolicyRoute, 'permission' | 'permissionMode'>,
  caller: Principal | null,
  authorize: Authorizer,
): boolean {
  if (permission === undefined) return true
  return caller !== null && (permissionMode === 'observe' || authorize(caller, permission))
}

/** Returns the callers of a policy by name. A role has the name of a role. */
export function callersOf({ roles }: Pick<Policy, 'roles'>): ReadonlyMap<string, Principal | null> {
  return new Map<string, Principal | null>([
    [ANONYMOUS, null],
    [NO_ROLE, roleCaller([])],
    ...[...roles.keys()].map((role) => [role, roleCaller([role])] as const),
  ])
}

/**
 * Returns the decision about each caller and route. Does NOT consider scopes, which narrow or grant
 * permissions by the settings of the issuer.
 */
export function matrixOf(policy: Policy): Matrix {
  const authorize = createAuthorizer(policy.roles)
  const callers = callersOf(policy)
  const rows = policy.routes.map((route) => ({
    route: nameOfRoute(route),
    permission: route.permission ?? null,
    admits: Object.fromEntries(
      [...callers].map(([name, caller]) => [name, admits(route, caller, authorize)]),
    ),
    relation: route.relation?.name ?? null,
    observed: [
      ...(route.permissionMode === 'observe' ? ['permission'] : []),
      ...(route.relation?.mode === 'observe' ? ['relation'] : []),
    ],
    limits: route.limits.map((limit) => `${limit.name} (${limitInWords(limit)})`),
  }))
  return { callers: [...callers.keys()], rows }
}
