/** Confines an operator with a tenant to that tenant. */
import { Denied } from '../../errors.ts'
import type { Principal } from '../../identity/principal.ts'
import type { ClientRegistry } from '../../oauth/client.ts'
import { type OperatorCall, permissionOf } from './permissions.ts'

export interface TenantWall {
  /** The call that is refused. */
  readonly call: OperatorCall
  /** The tenant issuers: their tenants are the gateway's tenants. */
  readonly tenantIssuers: ReadonlySet<string>
}

/**
 * Returns the tenant of a call: the tenant that it names, or the operator's own. An operator
 * without a tenant may name any. Throws `Denied` (`permission_missing`) for any other tenant than
 * the operator's own. Throws it for every tenant if the operator's issuer is not a tenant issuer:
 * its tenant of the same name is another tenant.
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
 * Throws `Denied` (`permission_missing`) if the operator has a tenant, and something belongs to
 * another tenant or to none.
 */
export function refuseElsewhere(
  operator: Principal,
  tenant: string | null | undefined,
  { call, tenantIssuers }: TenantWall,
): void {
  if (operator.tenant === undefined) return
  if (operator.tenant === tenant && tenantIssuers.has(operator.issuer)) return
  throw new Denied({ code: 'permission_missing', permission: permissionOf(call) })
}

/**
 * Returns the `owners` that an operator's call about a tenant covers: all of them, or for an
 * operator with a tenant, only tenant issuers. Throws `Denied` (`permission_missing`) if none is
 * left.
 */
export function ownersWithin(
  operator: Principal,
  owners: readonly string[],
  wall: TenantWall,
): readonly string[] {
  if (operator.tenant === undefined) return owners
  const own = owners.filter((owner) => wall.tenantIssuers.has(owner))
  if (own.length === 0) refuseElsewhere(operator, undefined, wall)
  return own
}

/**
 * Throws `Denied` (`permission_missing`) if an operator with a tenant would create a credential
 * with the id of a client of another tenant, or of none. The credential would use that client's
 * limits and cause its bans, and a service that reads only the id would take it for that client.
 * Names that are not client ids belong to no tenant. Makes at most one call for each name. Throws
 * `Unavailable` if the call fails.
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
