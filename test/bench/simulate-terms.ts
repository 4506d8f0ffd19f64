/** The small fleet of the comparison of the simulation with real gateways. */
export const LIMIT = { limit: 80, windowSeconds: 2, by: 'subject' } as const
export const LEASE = { max: 16, ttlMs: 500 } as const
export const STALENESS_MS = 400
