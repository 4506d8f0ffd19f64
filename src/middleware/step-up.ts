/** The `stepUp` stage: demands a kind and an age of the caller's login (RFC 9470). */
import { unmetByCaller } from '../access/tokens/login.ts'
import { Denied } from '../errors.ts'
import type { LoginDemand } from '../problems/step-up.ts'
import { callerOf } from './context.ts'
import { createMiddleware } from './create-middleware.ts'

export interface StepUpOptions {
  readonly demand: LoginDemand
  /** Whether callers must have a proof of possession: the challenge then is for DPoP. Default false. */
  readonly dpop?: boolean | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Admits a caller whose login is of an accepted kind (`acr`) and recent enough (`auth_time`). Both are
 * compared at each request: the age of a cached token grows. Refuses others with
 * `insufficient_user_authentication`, callers with a browser session with `sign_in_required`, and anonymous
 * callers with `missing_token` (all 401). An API key has no login, so it never passes. Must run after
 * `admit`, which identifies opaque tokens.
 *
 * @example
 * ```ts
 * app.get('/payments', stepUp({ demand: { acr: ['mfa'], maxAgeSeconds: 300 } }), handler)
 * ```
 */
export function stepUp({ demand, dpop = false, now = () => Date.now() }: StepUpOptions) {
  return createMiddleware(function stepUp(c, next) {
    const caller = callerOf(c, 'stepUp')
    if (caller === null) throw new Denied({ code: 'missing_token' })
    const check = unmetByCaller(caller, demand, now())
    if (check === undefined) return next()
    throw new Denied(
      caller.signIn === undefined
        ? { code: 'insufficient_user_authentication', check, demand, ...(dpop && { proof: true }) }
        : { code: 'sign_in_required', check: 'step_up', demand },
    )
  })
}
