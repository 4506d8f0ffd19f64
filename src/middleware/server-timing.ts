/** Reports how long each stage of a request took, to operators only. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Authorizer } from '../access/permissions.ts'
import type { Principal } from '../access/principal.ts'
import { writeHeaders } from '../http/response-headers.ts'
import { attached } from '../isolate/attached.ts'
import { callerOf, type TimelineVariables } from './context.ts'

export interface ServerTimingOptions {
  readonly authorizer: Authorizer
  /** The clock of `audit`, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

type Environment = { Variables: Partial<TimelineVariables> }

/** Timings reveal what is cached, and which guard refused. */
const TIMINGS_PERMISSION = 'portcullis:timings:read'

/**
 * Adds `Server-Timing` (W3C) to responses to callers with the permission `portcullis:timings:read`:
 * milliseconds of each stage that was entered, and `total`. On Workers a stage that only computes
 * takes 0. Comes right after `admit`: a revoked token gets no timings.
 *
 * @example
 * ```ts
 * app.use(authenticate({ verifier }), admit({ admission }), serverTiming({ authorizer }))
 * ```
 */
export const serverTiming = ({
  authorizer,
  now = () => Date.now(),
}: ServerTimingOptions): MiddlewareHandler<Environment> => {
  const mayRead = attached<Principal, boolean>()

  async function timed(c: Context<Environment>, next: Next): Promise<void> {
    await next()
    const durations = Object.entries(c.get('portcullis.timeline')?.durations(now()) ?? {})
    const totalMs = durations.reduce((sum, [, tookMs]) => sum + tookMs, 0)
    const entries = [...durations, ['total', totalMs]].map(([name, ms]) => `${name};dur=${ms}`)
    writeHeaders(c, (headers) => headers.set('Server-Timing', entries.join(', ')))
  }

  return function serverTiming(c, next) {
    const principal = callerOf(c, 'serverTiming')
    if (principal === null) return next()
    const may = mayRead(principal) ?? mayRead(principal, authorizer(principal, TIMINGS_PERMISSION))
    return may ? timed(c, next) : next()
  }
}
