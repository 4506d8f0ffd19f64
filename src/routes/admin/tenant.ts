/** The tenants, issuers and addresses that an operator's call may cover. */
import { Denied } from '../../errors.ts'
import type { Principal } from '../../identity/principal.ts'
import { addressGroup } from '../../middleware/client-address.ts'
import type { ClientRegistry } from '../../oauth/client.ts'
import { inputRefused } from './input.ts'
import { type OperatorCall, permissionOf } from './permissions.ts'

export interface TenantScope {
  readonly operator: Principal
  /** The call whose permission a refusal names. */
  readonly call: OperatorCall
  readonly tenantIssuers: ReadonlySet<string>
}

/** Returns the tenant that a call names, or the operator's own. Throws for any other tenant. */
export function tenantOf(scope: TenantScope, named: string | undefined): string | undefined {
  const own = scope.operator.tenant
  if (own === undefined) return named
  refuseOtherTenant(scope, named ?? own)
  return own
}

/**
 * Throws `Denied` (`permission_missing`) if the operator has a tenant, and something belongs to
 * another tenant or to none. If the operator's issuer is not a tenant issuer, its tenant of the same
 * name is another tenant.
 */
export function refuseOtherTenant(
  { operator, call, tenantIssuers }: TenantScope,
  tenant: string | null | undefined,
): void {
  if (operator.tenant === undefined) return
  if (operator.tenant === tenant && tenantIssuers.has(operator.issuer)) return
  throw new Denied({ code: 'permission_missing', permission: permissionOf(call) })
}

/** Returns the `owners` that a call about a tenant covers. Throws as {@link refuseOtherTenant}. */
export function ownersWithin(scope: TenantScope, owners: readonly string[]): readonly string[] {
  if (scope.operator.tenant === undefined) return owners
  const own = owners.filter((owner) => scope.tenantIssuers.has(owner))
  if (own.length === 0) refuseOtherTenant(scope, undefined)
  return own
}

/**
 * Throws `Denied` (`permission_missing`) if an operator with a tenant would create a credential
 * with the id of a client of another tenant, or of none. The credential would use that client's
 * limits and cause its bans, and a service that reads only the id would confuse the two.
 */
export async function refuseForeignClientIds(
  scope: TenantScope,
  names: readonly string[],
  clients: Pick<ClientRegistry, 'find'>,
): Promise<void> {
  if (scope.operator.tenant === undefined) return
  for (const name of new Set(names)) {
    const client = await clients.find(name)
    if (client !== undefined) refuseOtherTenant(scope, client.tenant)
  }
}

/** Returns the issuer that a call names, or all trusted issuers. Throws for an unknown issuer. */
export function issuersOf(
  issuer: string | undefined,
  trusted: readonly string[],
): readonly string[] {
  if (issuer === undefined) return trusted
  if (!trusted.includes(issuer))
    throw inputRefused('body', '/issuer', 'must be one of the trusted issuers')
  return [issuer]
}

/**
 * Returns the issuers that own what a call covers: of one tenant, or of the subjects of an issuer.
 * Throws `Denied` if the operator has another tenant.
 */
export function ownersOf(
  scope: TenantScope,
  { issuer, tenant }: { readonly issuer: string | undefined; readonly tenant: string | undefined },
  trusted: readonly string[],
): readonly string[] {
  if (tenant === undefined) return issuersOf(issuer, trusted)
  refuseOtherTenant(scope, tenant)
  return ownersWithin(scope, issuersOf(issuer, trusted))
}

/** The written form of an IPv6 group, which is not an address itself. */
const GROUP_END = /::\/64$/

/** Returns the `value` of a body as `admit` normalizes addresses: IPv6 as its /64. */
export function addressOf(value: string): string {
  const group = addressGroup(value.replace(GROUP_END, '::'))
  if (group === undefined) throw inputRefused('body', '/value', 'must be an IP address')
  return group
}
