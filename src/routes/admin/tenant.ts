/** The tenants, issuers and addresses that an operator's call may cover. */
import { Denied } from '../../errors.ts'
import { addressGroup } from '../../middleware/client-address.ts'
import type { Owned } from '../../validators/owner.ts'
import type { ListFilter } from '../../validators/page.ts'
import { existing, inputRefused } from './input.ts'
import { permissionOf } from './permissions.ts'
import type { TenantScope } from './scope.ts'

export type { TenantScope } from './scope.ts'

/** Returns the tenant that a call names, or the operator's own. Throws for any other tenant. */
export function selectTenant(scope: TenantScope, named: string | undefined): string | undefined {
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

/**
 * Returns the tenant of the operator, undefined if it has none. Throws `Denied` (`permission_missing`)
 * if its issuer is not a tenant issuer.
 */
export function confinedTo(scope: TenantScope): string | undefined {
  const { tenant } = scope.operator
  if (tenant !== undefined) refuseOtherTenant(scope, tenant)
  return tenant
}

/** Throws `Denied` (`permission_missing`) if the operator has a tenant. */
export function refuseTenant(scope: TenantScope): void {
  refuseOtherTenant(scope, undefined)
}

/**
 * Returns the record that a call names by its id, if it belongs to the tenant of the operator. Throws
 * `Denied` (`not_found`) for another record and for none: the two look the same.
 */
export async function withinTenant<Value extends { readonly tenant?: string | null | undefined }>(
  scope: TenantScope,
  stored: Promise<Value | undefined>,
): Promise<Value> {
  // First: if the operator is refused, a later failure of the store would have no handler.
  const value = await stored
  const tenant = confinedTo(scope)
  return existing(tenant === undefined || value?.tenant === tenant ? value : undefined)
}

interface OwnedRecord extends Owned {
  /** The issuers that it concerns. */
  readonly issuers: readonly string[]
}

/**
 * Returns the filter of a list for an operator with a tenant: records that concern its tenant, and with
 * `isShared` others that it may read. Undefined: the operator has no tenant.
 */
export function listedFor<Item>(
  scope: TenantScope,
  ownedOf: (item: Item) => OwnedRecord,
  isShared: (item: Item) => boolean = () => false,
): ListFilter<Item> | undefined {
  const tenant = confinedTo(scope)
  if (tenant === undefined) return undefined
  return {
    hidesOthers: true,
    isListed: (item) => isShared(item) || concerns(scope, ownedOf(item)),
  }
}

/** Whether a record concerns the tenant of the operator: its name, at one of the tenant issuers. */
function concerns({ operator, tenantIssuers }: TenantScope, record: OwnedRecord): boolean {
  if (operator.tenant === undefined) return true
  return (
    record.tenant === operator.tenant && record.issuers.some((issuer) => tenantIssuers.has(issuer))
  )
}

/**
 * Throws if an operator must not remove a record: `Denied` (`not_found`) if it may not read it either, and
 * else `Denied` (`permission_missing`) if the platform owns it.
 */
export function refuseRemoval<Item>(
  scope: TenantScope,
  item: Item,
  ownedOf: (item: Item) => OwnedRecord,
  isShared: (item: Item) => boolean = () => false,
): void {
  const filter = listedFor(scope, ownedOf, isShared)
  if (filter === undefined) return
  if (!filter.isListed(item)) throw new Denied({ code: 'not_found' })
  if (ownedOf(item).owner !== 'tenant') refuseTenant(scope)
}

/**
 * Returns the owner and the tenant of a new record, and the issuers that it covers: for an operator with
 * a tenant, its tenant at the tenant issuers.
 */
export function ownedBy(
  scope: TenantScope,
  { issuer, tenant }: { readonly issuer: string | undefined; readonly tenant: string | undefined },
  trusted: readonly string[],
): OwnedRecord {
  const own = selectTenant(scope, tenant)
  const issuers = ownersWithin(scope, selectIssuers(issuer, trusted))
  const isConfined = scope.operator.tenant !== undefined
  return { tenant: own, issuers, ...(isConfined && { owner: 'tenant' as const }) }
}

/** Returns the `owners` that a call about a tenant covers. Throws as {@link refuseOtherTenant}. */
export function ownersWithin(scope: TenantScope, owners: readonly string[]): readonly string[] {
  if (scope.operator.tenant === undefined) return owners
  const own = owners.filter((owner) => scope.tenantIssuers.has(owner))
  if (own.length === 0) refuseOtherTenant(scope, undefined)
  return own
}

/** An id that the gateway has given a client. */
const GIVEN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/**
 * Throws `Denied` (`permission_missing`) if an operator with a tenant would create a credential
 * with the id of a client of another tenant, or of none. A service that reads only the id would confuse
 * the two. An id that looks like one of the gateway is refused as well if no client has it, so that the
 * answer does not reveal which clients exist.
 */
export async function refuseForeignClientIds(
  scope: TenantScope,
  names: readonly string[],
  clients: {
    find(id: string): Promise<{ readonly tenant?: string | null | undefined } | undefined>
  },
): Promise<void> {
  if (scope.operator.tenant === undefined) return
  for (const name of new Set(names)) {
    const client = await clients.find(name)
    if (client !== undefined || GIVEN_ID.test(name)) refuseOtherTenant(scope, client?.tenant)
  }
}

/** Returns the issuer that a call names, or all trusted issuers. Throws for an unknown issuer. */
export function selectIssuers(
  issuer: string | undefined,
  trusted: readonly string[],
): readonly string[] {
  if (issuer === undefined) return trusted
  if (!trusted.includes(issuer))
    throw inputRefused('body', '/issuer', 'must be one of the trusted issuers')
  return [issuer]
}

/** The written form of an IPv6 group, which is not an address itself. */
const GROUP_END = /::\/64$/

/** Returns the `value` of a body as `admit` normalizes addresses: IPv6 as its /64. */
export function normalizeValue(value: string): string {
  const group = addressGroup(value.replace(GROUP_END, '::'))
  if (group === undefined) throw inputRefused('body', '/value', 'must be an IP address')
  return group
}
