/** Which permission checks are timed inside an isolate, and what they have to say. */

export interface PermissionCheck {
  readonly id: string
  /** In tables. */
  readonly title: string
  readonly roles: readonly string[]
  readonly scopes: readonly string[]
  readonly permission: string
  readonly allowed: boolean
}

/** Roles beside those that are asked for, as a grown policy has them. */
const OTHER_ROLES = 100
const TEAMS = Array.from({ length: OTHER_ROLES }, (_, index) => `team-${index}`)

/** Of the policy that is asked. */
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

/** What a batch answers: how many checks there were, and how many of them said yes. */
export interface ChecksAnswer {
  readonly count: number
  readonly allowed: number
}

/** Checks nothing as often as it is asked to: what a batch costs by itself. */
export const NO_CHECK = 'nothing'

/** Path of a batch of so many. */
export const checksPath = (id: string, count: number): string => `/${id}/${count}`

function check(
  id: string,
  title: string,
  of: Partial<Omit<PermissionCheck, 'id' | 'title'>>,
): PermissionCheck {
  return { id, title, roles: [], scopes: [], permission: 'orders:read', allowed: true, ...of }
}
