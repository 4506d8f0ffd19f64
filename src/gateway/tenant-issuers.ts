/** The tenant issuers: their tenants are the gateway's tenants. */
import type { Policy } from '../policy/policy.ts'
import type { Config } from '../validators/environment.ts'

/**
 * Returns the gateway itself, and the issuers that the policy names. If it names none, the only
 * other trusted issuer counts. Of several, none counts: each may have a tenant of the same name.
 */
export function listTenantIssuers(
  { tenantIssuers }: Pick<Policy, 'tenantIssuers'>,
  { issuers, publicUrl }: Pick<Config, 'issuers' | 'publicUrl'>,
): ReadonlySet<string> {
  const others = issuers.map(({ issuer }) => issuer).filter((issuer) => issuer !== publicUrl)
  return new Set([publicUrl, ...(tenantIssuers ?? (others.length === 1 ? others : []))])
}
