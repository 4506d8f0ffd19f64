/** Reports to operators how long each stage of their request took. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Authorizer } from '../authorization/permissions.ts'
import { writeHeaders } from '../http/response-headers.ts'
import type { Principal } from '../identity/principal.ts'
import { callerOf, type PrincipalVariables, type TimelineVariables } from './context.ts'

export interface ServerTimingOptions {
  /** From `createAuthorizer(roles)`. */
  readonly authorizer: Authorizer
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

type Environment = { Variables: PrincipalVariables & Partial<TimelineVariables> }

/** The permission to read timings. Timings reveal what is cached, and which guard refused. */
export const TIMINGS_PERMISSION = 'portcullis:timings:read'

/**
 * Adds `Server-Timing` (W3C) to responses to callers with the permission `portcullis:timings:read`:
 * milliseconds of each stage that was entered, and `total`. The permission is checked once for each
 * principal, so that other callers cost one look-up. Comes right after `admit`: a revoked token
 * gets no timings. On Workers a stage that only computes takes 0.
 *
 * @example
 * ```ts
 * app.use(authenticate({ verifier }), admit({ admission }), serverTiming({ authorizer }))
 * ```
 */
export const serverTiming = ({
  authorizer,
  now = Date.now,
}: ServerTimingOptions): MiddlewareHandler<Environment> => {
  const decided = new WeakMap<Principal, boolean>()

  function mayReadTimings(principal: Principal): boolean {
    let may = decided.get(principal)
    if (may === undefined) {
      may = authorizer(principal, TIMINGS_PERMISSION)
      decided.set(principal, may)
    }
    return may
  }

  async function timed(c: Context<Environment>, next: Next): Promise<void> {
    await next()
    const durations = Object.entries(c.get('timeline')?.durations(now()) ?? {})
    const totalMs = durations.reduce((sum, [, tookMs]) => sum + tookMs, 0)
    const entries = [...durations, ['total', totalMs]].map(([name, ms]) => `${name};dur=${ms}`)
    writeHeaders(c, (headers) => headers.set('Server-Timing', entries.join(', ')))
  }

  return function serverTiming(c, next) {
    const principal = callerOf(c)
    return principal === null || !mayReadTimings(principal) ? next() : timed(c, next)
  }
}
