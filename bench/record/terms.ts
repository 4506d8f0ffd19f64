/** What the gateways of the recorded run promise: their policy, and what the checker holds them to. */

/** How old may be what an isolate knows of revocations. */
export const BOUND_MS = 1_000
/** Processes of workerd, an isolate each. */
export const PROCESSES = 4

export interface LimitTerms {
  readonly limit: number
  readonly windowMs: number
  /** Units that an isolate may hold, and for how long. Undefined: it asks each time. */
  readonly lease: { readonly max: number; readonly ttlMs: number } | undefined
}

export type LimitName = 'leased' | 'strict'

export const LIMITS: Readonly<Record<LimitName, LimitTerms>> = {
  leased: { limit: 100, windowMs: 2_000, lease: { max: 50, ttlMs: 500 } },
  strict: { limit: 100, windowMs: 2_000, lease: undefined },
}

/** Paths, and the limits of each. All limits are by subject. */
export const ROUTES = {
  free: [],
  leased: ['leased'],
  strict: ['strict'],
  both: ['leased', 'strict'],
} as const satisfies Readonly<Record<string, readonly LimitName[]>>

export type RouteName = keyof typeof ROUTES

/** What a checker has to know of the system that made a history. */
export interface Terms {
  readonly boundMs: number
  readonly processes: number
  readonly limits: Readonly<Record<string, LimitTerms>>
  readonly routes: Readonly<Record<string, readonly string[]>>
}

export const TERMS: Terms = {
  boundMs: BOUND_MS,
  processes: PROCESSES,
  limits: LIMITS,
  routes: ROUTES,
}
