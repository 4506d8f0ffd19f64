/** The tenant issuers: their tenants are the gateway's tenants. */

import type { Policy } from '../policy/policy.ts'
import type { Config } from '../validators/environment.ts'

/**
 * Returns the tenant issuers: the gateway itself, and the issuers that the policy names. If it
 * names none, the only other trusted issuer counts. If there are several, none of them counts: each
 * may have a tenant of the same name, and those must stay separate.
 */
export function tenantIssuersOf(
  { tenantIssuers }: Pick<Policy, 'tenantIssuers'>,
  { issuers, publicUrl }: Pick<Config, 'issuers' | 'publicUrl'>,
): ReadonlySet<string> {
  const others = issuers.map(({ issuer }) => issuer).filter((issuer) => issuer !== publicUrl)
  return new Set([publicUrl, ...(tenantIssuers ?? (others.length === 1 ? others : []))])
}
