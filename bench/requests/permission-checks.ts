/** The permission checks that are timed inside an isolate, and their expected results. */

export interface PermissionCheck {
  readonly id: string
  /** Title in tables. */
  readonly title: string
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
  readonly permission: string
  readonly allowed: boolean
}

/** Number of other roles, as in a large policy. */
const OTHER_ROLES = 100
const TEAMS = Array.from({ length: OTHER_ROLES }, (_, index) => `team-${index}`)

/** Roles of the checked policy. */
export const CHECK_ROLES: ReadonlyMap<string, readonly string[]> = new Map<
  string,
  readonly string[]
>([
  ['writer', ['orders:read', 'orders:write']],
  ['admin', ['orders:*', 'reports:*']],
  ['world', ['world:*']],
  ...TEAMS.map((team) => [team, [`${team}:read`, `${team}:write`]] as const),
])

export const PERMISSION_CHECKS: readonly PermissionCheck[] = [
  check('role', 'a role that names it', { roles: ['writer'] }),
  check('wildcard', 'a role with a wildcard', { roles: ['admin'] }),
  check('five-levels', 'a wildcard four levels above it', {
    roles: ['world'],
    permission: 'world:realm:zone:room:open',
  }),
  check('narrowed', 'a role, narrowed by scopes', {
    roles: ['writer'],
    scopes: ['openid', 'orders:read'],
  }),
  check('scopes', 'scopes alone', { scopes: ['openid', 'orders:*'] }),
  check('denied', 'ten roles that do not grant it', { roles: TEAMS.slice(0, 10), allowed: false }),
]

/** The result of a batch: the number of checks, and how many of them allowed. */
export interface ChecksAnswer {
  readonly count: number
  readonly allowed: number
}

/** A batch without checks: measures the cost of the batch itself. */
export const NO_CHECK = 'nothing'

/** Returns the path of a batch of `count` checks. */
export const checksPath = (id: string, count: number): string => `/${id}/${count}`

function check(
  id: string,
  title: string,
  of: Partial<Omit<PermissionCheck, 'id' | 'title'>>,
): PermissionCheck {
  return { id, title, roles: [], scopes: [], permission: 'orders:read', allowed: true, ...of }
}
