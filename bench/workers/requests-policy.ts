/** The policy that ships, with room, and with routes for what the scenarios ask besides. */

import * as z from 'zod'
import { signatures } from '../../src/features/signatures.ts'
import { definePolicy, type Policy } from '../../src/index.ts'
import { roomy } from './policy.ts'
import { EXEMPT_ADDRESS, LEASE, MAX_STALENESS_MS } from './variants.ts'

/** So long that hardly any run meets its end. */
const DAY_SECONDS = 86_400
/** More than any run asks for. */
const AMPLE = 1_000_000_000

const additions = definePolicy({
  roles: {},
  limits: {
    ample: { limit: AMPLE, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    once: { limit: 1, windowSeconds: DAY_SECONDS, by: 'subject', onUnavailable: 'deny' },
  },
  // Whoever sends bad credentials from here has each of them looked at: what a refusal costs at most.
  abuse: { exempt: ['127.0.0.0/8', `${EXEMPT_ADDRESS}/32`] },
  routes: [
    { method: 'GET', path: '/once', permission: 'orders:read', limits: ['once'] },
    {
      method: 'GET',
      path: '/search',
      permission: 'orders:read',
      limits: ['ample'],
      input: { query: z.strictObject({ q: z.string().max(200) }) },
      inspect: { signatures: signatures({ mode: 'enforce' }) },
    },
  ],
})

/** Returns it below `prefix`. Its own routes are all but `/once` as roomy as the shipped ones. */
export function requestsPolicy(shipped: Policy, prefix: string): Policy {
  const { routes, ...policy } = roomy(shipped, prefix)
  const own = additions.routes.map((route) => ({ ...route, path: prefix + route.path }))
  return { ...policy, abuse: additions.abuse, routes: [...routes, ...own] }
}

/** The same policy, with units that are taken ahead of every limit. */
export function leasedPolicy(policy: Policy): Policy {
  return {
    ...policy,
    revocation: { maxStalenessMs: MAX_STALENESS_MS },
    routes: policy.routes.map((route) => ({
      ...route,
      limits: route.limits.map((limit) => ({ ...limit, lease: LEASE })),
    })),
  }
}
