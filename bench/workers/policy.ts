/** The policy that ships, with room for a benchmark. */
import type { Policy } from '../../src/index.ts'

/** More than any run asks for, so that every request is counted and none is refused. */
const ROOMY_LIMIT = 1_000_000_000

const ROOMY = { limit: ROOMY_LIMIT, windowSeconds: 60 }

/** Returns `policy` below `prefix`, with the same limits at a number that nobody reaches. */
export function roomy(policy: Policy, prefix: string): Policy {
  return {
    ...policy,
    tokens: { ...policy.tokens, exchangeLimits: { client: ROOMY, subjectToken: ROOMY } },
    routes: policy.routes.map((route) => ({
      ...route,
      path: prefix + route.path,
      limits: route.limits.map((limit) => ({ ...limit, limit: ROOMY_LIMIT })),
    })),
  }
}
