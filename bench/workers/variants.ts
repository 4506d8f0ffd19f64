/** Variants of the Worker `requests.ts`. Each has its own first path segment. */

/**
 * `passthrough` only proxies. `platform` also makes the pipeline's calls to the platform, and
 * `platform-redis` a call to Redis too. `gateway` is the whole pipeline. `unasked` is the whole pipeline with an admission without calls. `leased`
 * has a policy with leases. `far` and `leased-far` use a Redis of the scenario. `related` has routes
 * that require a relation; `related-cached` also caches decisions, and `related-leased` also uses
 * leases. `browser` also has a route with browser sessions.
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
  'related',
  'related-cached',
  'related-leased',
  'browser',
] as const
export type Variant = (typeof VARIANTS)[number]

/** The lease of every limit of `leased`, and the maximum staleness of its revocation state. */
export const LEASE = { max: 100_000, ttlMs: 1_000 } as const
export const MAX_STALENESS_MS = 1_000

/** Path of an order that requires a relation, and of one that requires only the permission. */
export const RELATED = '/related'
export const UNRELATED = '/unrelated'
/** Path of the list of orders, and the prefix of the same route with browser sessions. */
export const LISTED = '/orders'
export const IN_SESSION = '/in-session'
/** Maximum age of the decisions of `related-cached`, the maximum of a policy, and their number. */
export const DECISION_MAX_STALENESS_MS = 60_000
export const DECISIONS_KEPT = 100_000

/** An address whose failures and violations are not counted: each credential is verified. */
export const EXEMPT_ADDRESS = '203.0.113.7'
