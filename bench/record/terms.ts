/**
 * The guarantees of the gateways of the recorded run: their policy, and the terms of the checker.
 */

/** Maximum staleness of an isolate's revocation state. */
export const BOUND_MS = 1_000
/** How long a used refresh token is accepted again, as a retry. */
export const GRACE_MS = 8_000
export const PROCESSES = 4
export const EVERYBODY: readonly number[] = Array.from({ length: PROCESSES }, (_, index) => index)

export interface LimitTerms {
  readonly limit: number
  readonly windowMs: number
  /** Units that an isolate may lease, and for how long. Undefined: no lease. */
  readonly lease: { readonly max: number; readonly ttlMs: number } | undefined
}

export type LimitName = 'leased' | 'strict'

export const LIMITS: Readonly<Record<LimitName, LimitTerms>> = {
  leased: { limit: 100, windowMs: 2_000, lease: { max: 50, ttlMs: 500 } },
  strict: { limit: 100, windowMs: 2_000, lease: undefined },
}

/** Paths and their limits. All limits count by subject. */
export const ROUTES = {
  free: [],
  leased: ['leased'],
  strict: ['strict'],
  both: ['leased', 'strict'],
} as const satisfies Readonly<Record<string, readonly LimitName[]>>

export type RouteName = keyof typeof ROUTES

/** Properties of the recorded system that the checker needs. */
export interface Terms {
  readonly boundMs: number
  readonly graceMs: number
  readonly processes: number
  readonly limits: Readonly<Record<string, LimitTerms>>
  readonly routes: Readonly<Record<string, readonly string[]>>
}

export const TERMS: Terms = {
  boundMs: BOUND_MS,
  graceMs: GRACE_MS,
  processes: PROCESSES,
  limits: LIMITS,
  routes: ROUTES,
}
