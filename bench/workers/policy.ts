/** The shipped policy, changed so that no request of a benchmark is refused by a limit. */
import type { Policy } from '../../src/index.ts'
import { EXEMPT_ADDRESS, LEASE, MAX_STALENESS_MS } from './variants.ts'

/** More requests than any run sends: every request is counted, and none is refused. */
const ROOMY_LIMIT = 1_000_000_000

const ROOMY = { limit: ROOMY_LIMIT, windowSeconds: 60 }

/**
 * Returns `policy` below `prefix` with raised limits. Failures and violations of the benchmark's
 * address do not count, so that the gateway verifies every bad credential.
 */
export function roomy(policy: Policy, prefix: string, most = ROOMY_LIMIT): Policy {
  return {
    ...policy,
    abuse: { ...policy.abuse, exempt: [...policy.abuse.exempt, `${EXEMPT_ADDRESS}/32`] },
    tokens: { ...policy.tokens, exchangeLimits: { client: ROOMY, subjectToken: ROOMY } },
    routes: policy.routes.map((route) => ({
      ...route,
      path: prefix + route.path,
      limits: route.limits.map((limit) => ({ ...limit, limit: most })),
    })),
  }
}

/** Returns `policy` with leases for every limit. */
export function leased(policy: Policy): Policy {
  return {
    ...policy,
    revocation: { maxStalenessMs: MAX_STALENESS_MS },
    routes: policy.routes.map((route) => ({
      ...route,
      limits: route.limits.map((limit) => ({ ...limit, lease: LEASE })),
    })),
  }
}
