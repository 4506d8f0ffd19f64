/** The wall around an operator who has a tenant: such a one acts for that tenant alone. */
import { Denied } from '../../errors.ts'
import type { ClientRegistry } from '../../oauth/client.ts'
import type { Principal } from '../../tokens/principal.ts'
import { type OperatorCall, permissionOf } from './permissions.ts'

/** What the wall goes by. */
export interface TenantWall {
  /** What is refused. */
  readonly call: OperatorCall
  /** Whose tenants the policy's relations are about; undefined: any trusted issuer's. */
  readonly issuers: ReadonlySet<string> | undefined
}

/**
 * The tenant that a call is about: the one that it names, or the operator's own. Another than one's own
 * is refused, and so is any where the operator's issuer is none of those whose tenants are meant: of
 * another, a tenant of the same name is somebody else. Throws `Denied` (`permission_missing`).
 */
export function tenantOf(
  operator: Principal,
  named: string | undefined,
  wall: TenantWall,
): string | undefined {
  if (operator.tenant === undefined) return named
  refuseElsewhere(operator, named ?? operator.tenant, wall)
  return operator.tenant
}

/**
 * Throws `Denied` (`permission_missing`) where something is of another tenant than the operator, or of
 * none while the operator has one.
 */
export function refuseElsewhere(
  operator: Principal,
  tenant: string | null | undefined,
  { call, issuers }: TenantWall,
): void {
  if (operator.tenant === undefined) return
  if (operator.tenant === tenant && issuers?.has(operator.issuer) !== false) return
  throw new Denied({ code: 'permission_missing', permission: permissionOf(call) })
}

/**
 * Those of `owners` that an operator's call about a tenant holds for: all, or for an operator with a
 * tenant, those whose tenants are meant. Throws `Denied` (`permission_missing`) where there are none.
 */
export function ownersWithin(
  operator: Principal,
  owners: readonly string[],
  wall: TenantWall,
): readonly string[] {
  if (operator.tenant === undefined) return owners
  const own = owners.filter((owner) => wall.issuers?.has(owner) !== false)
  if (own.length === 0) refuseElsewhere(operator, undefined, wall)
  return own
}

/**
 * Throws `Denied` (`permission_missing`) where an operator with a tenant would hand out a credential that
 * goes by the id of a client of another tenant, or of none: it would count in that client's limits, earn
 * its bans, and be it for whoever looks at nothing but the id. Other names tell no tenant. One call for each
 * name that is a client's. Throws `Unavailable`.
 */
export async function refuseOthersNames(
  operator: Principal,
  names: readonly string[],
  wall: TenantWall & { readonly clients: Pick<ClientRegistry, 'find'> },
): Promise<void> {
  if (operator.tenant === undefined) return
  for (const name of new Set(names)) {
    const client = await wall.clients.find(name)
    if (client !== undefined) refuseElsewhere(operator, client.tenant, wall)
  }
}
