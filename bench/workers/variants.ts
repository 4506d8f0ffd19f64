/** Variants of the Worker `requests.ts`. Each has its own first path segment. */

/**
 * `passthrough` only proxies. `platform` also makes the pipeline's calls to the platform, and
 * `platform-redis` a call to Redis too. `gateway` is the whole pipeline. `unasked` is the whole pipeline with an admission without calls. `leased`
 * has a policy with leases. `far` and `leased-far` use a Redis of the scenario. `watched` is the whole pipeline, and reports the deadlines of its calls.
 */
export const VARIANTS = [
  'passthrough',
  'platform',
  'platform-redis',
  'gateway',
  'unasked',
  'leased',
  'far',
  'leased-far',
  'watched',
] as const
export type Variant = (typeof VARIANTS)[number]

/** The lease of every limit of `leased`, and the maximum staleness of its revocation state. */
export const LEASE = { max: 100_000, ttlMs: 1_000 } as const
export const MAX_STALENESS_MS = 1_000

/** An address whose failures and violations are not counted: each credential is verified. */
export const EXEMPT_ADDRESS = '203.0.113.7'
