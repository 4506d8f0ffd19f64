/** Which callers a policy admits to which routes, decided by the authorizer of the gateway. */
import { type Authorizer, createAuthorizer } from '../../src/access/permissions.ts'
import type { Principal } from '../../src/access/principal.ts'
import type { RelationDemand } from '../../src/access/relations/definition.ts'
import { listFeatures } from '../../src/gateway/feature.ts'
import { limitsNamed } from '../../src/policy/limits.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'
import { nameOfRoute } from '../../src/policy/route.ts'
import { type Call, callsOf, nameOfCall } from './calls.ts'
import { authenticationInWords, limitInWords } from './words.ts'

export interface MatrixRow {
  /** `GET /orders/:id`, or a call of a route: `tool search_books of POST /mcp`. */
  readonly route: string
  readonly permission: string | null
  /** By caller: `anonymous`, `no role`, or a role. */
  readonly admits: Readonly<Record<string, boolean>>
  /** The relation that the caller needs as well: `order#viewer`. */
  readonly relation: string | null
  /** Credentials of a route with browser sessions. Null: it accepts no session. */
  readonly session: string | null
  /** What a route demands of the login of a caller, who then cannot have an API key. Null: nothing. */
  readonly authentication: string | null
  /** Rules that only observe: `permission`, `relation`. */
  readonly observed: readonly string[]
  readonly limits: readonly string[]
}

export interface Matrix {
  readonly callers: readonly string[]
  readonly rows: readonly MatrixRow[]
}

/** Columns that only some policies need. */
const LOGIN_COLUMNS = ['session', 'authentication'] as const
type LoginColumn = (typeof LOGIN_COLUMNS)[number]

/** Returns the columns about sessions and logins that a matrix needs. */
export const loginColumns = ({ rows }: Pick<Matrix, 'rows'>): readonly LoginColumn[] =>
  LOGIN_COLUMNS.filter((name) => rows.some((row) => row[name] !== null))

/** Returns the heading of such a column. */
export const headingOf = (column: LoginColumn): string =>
  column.charAt(0).toUpperCase() + column.slice(1)

const ANONYMOUS = 'anonymous'
const NO_ROLE = 'no role'

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

/** Reports whether the permissions of a route and of a call admit a caller. */
export const admitsCall = (
  route: PolicyRoute,
  call: Call | undefined,
  caller: Principal | null,
  authorize: Authorizer,
): boolean =>
  call !== undefined &&
  admits(route, caller, authorize) &&
  (call.permission === undefined || (caller !== null && authorize(caller, call.permission)))

/** Returns the type of the object and the relation: `document#viewer`. */
const relationOf = (demand: RelationDemand | undefined): string | undefined =>
  demand && `${demand.object.split(':')[0]}#${demand.relation}`

/** Returns the callers of a policy by name. A role has the name of a role. */
export function callersOf({ roles }: Pick<Policy, 'roles'>): ReadonlyMap<string, Principal | null> {
  return new Map<string, Principal | null>([
    [ANONYMOUS, null],
    [NO_ROLE, roleCaller([])],
    ...[...roles.keys()].map((role) => [role, roleCaller([role])] as const),
  ])
}

/** Returns the routes and operators' calls that features of the user add. */
export const routesOfFeatures = (policy: Policy): readonly PolicyRoute[] =>
  listFeatures(policy).flatMap((feature) => feature.routesIn?.(policy) ?? [])

/**
 * Returns the decision about each caller and route. Does NOT consider scopes, which narrow or grant
 * permissions by the settings of the issuer.
 */
export function matrixOf(policy: Policy): Matrix {
  const authorize = createAuthorizer(policy.roles)
  const callers = callersOf(policy)
  const rows = [
    ...policy.routes.flatMap((route) => [
      rowOf(route),
      ...(callsOf(route)?.names ?? []).map((name) => rowOf(route, name)),
    ]),
    ...routesOfFeatures(policy).map((route) => rowOf(route)),
  ]

  function rowOf(route: PolicyRoute, name?: string): MatrixRow {
    const call = name === undefined ? undefined : callsOf(route)?.find(name)
    const isAdmitted = (caller: Principal | null) =>
      name === undefined
        ? admits(route, caller, authorize)
        : admitsCall(route, call, caller, authorize)
    const permissions = [route.permission, call?.permission].filter((one) => one !== undefined)
    const named = (call?.limits ?? []).flatMap((limit) => limitsNamed(policy.limits, limit))
    return {
      route: name === undefined ? nameOfRoute(route) : nameOfCall(name, nameOfRoute(route)),
      permission: permissions.length === 0 ? null : permissions.join(' and '),
      admits: Object.fromEntries([...callers].map(([name, caller]) => [name, isAdmitted(caller)])),
      relation: relationOf(call?.relation) ?? route.relation?.name ?? null,
      session: sessionInWords(route.session),
      authentication: authenticationInWords(route) ?? null,
      observed: [
        ...(route.permissionMode === 'observe' ? ['permission'] : []),
        ...((call?.relation ?? route.relation)?.mode === 'observe' ? ['relation'] : []),
      ],
      limits: [...new Set([...route.limits, ...named])].map(
        (limit) => `${limit.name} (${limitInWords(limit)})`,
      ),
    }
  }
  return { callers: [...callers.keys()], rows }
}

function sessionInWords(session: PolicyRoute['session']): string | null {
  if (session === undefined) return null
  return session === 'optional' ? 'optional session' : 'session or token'
}
