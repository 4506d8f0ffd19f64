/** Decides whether a client may act for a subject of a tenant. */
import type { Principal } from '../identity/principal.ts'
import type { Client } from './client.ts'

/**
 * Reports whether `client` may act for a subject of this tenant. A client with a tenant acts for
 * that tenant alone, because a tenant's operators can create clients. They must not be able to turn
 * a stolen token of another tenant into a session. A tenant is a name at an issuer. The issuer of
 * the subject must therefore share its tenants with the gateway (docs/decisions/0046).
 */
export function mayActFor(
  client: Client,
  { issuer, tenant }: Pick<Principal, 'issuer' | 'tenant'>,
  tenantIssuers: ReadonlySet<string>,
): boolean {
  if (client.tenant === undefined) return true
  return client.tenant === tenant && tenantIssuers.has(issuer)
}
