/** Requires an audience in the token of the caller, for one route. */
import type { MiddlewareHandler } from 'hono'
import { rejectedFor } from '../../access/tokens/rejection.ts'
import { callerOf, type PrincipalVariables } from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'

export interface RequireAudienceOptions {
  /** A value of `aud`, compared exactly. */
  readonly audience: string
}

/**
 * Refuses a token that is not for `audience` with `token_rejected` (401), as RFC 9068 section 4
 * demands. An anonymous caller passes. Must run after `admit`, which identifies opaque tokens and API
 * keys.
 *
 * @example
 * ```ts
 * app.get('/orders', authenticate({ verifier }), requireAudience({ audience: 'https://orders.example.com' }))
 * ```
 */
export const requireAudience = ({
  audience,
}: RequireAudienceOptions): MiddlewareHandler<{ Variables: PrincipalVariables }> =>
  createMiddleware<{ Variables: PrincipalVariables }>(function requireAudience(c, next) {
    const caller = callerOf(c, 'requireAudience')
    if (caller !== null && caller.audiences?.includes(audience) !== true)
      throw rejectedFor('aud', caller.audiences, [audience])
    return next()
  })
