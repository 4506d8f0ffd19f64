/** The `leaveAuthorization` stage: leaves credentials of some schemes to the origin. */
import type { MiddlewareHandler } from 'hono'
import { Denied } from '../errors.ts'
import { hasSeveralCredentials, schemeOf, unverifiedSchemes } from '../tokens/credential.ts'
import type { ReceivedHeadersVariables, UnverifiedAuthorizationVariables } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

export interface LeaveAuthorizationOptions {
  /** As in `forwardAuthorization` of a route: `['Basic']`. Compared without case (RFC 9110 section 11.1). */
  readonly schemes: readonly string[]
}

type Environment = {
  Variables: UnverifiedAuthorizationVariables & Partial<ReceivedHeadersVariables>
}

/**
 * Hides an `Authorization` header of one of the schemes from the stages after it, so that its caller is
 * anonymous, and keeps it for `proxy`. Does NOT verify it: the origin does. `Bearer` and `DPoP` have no
 * effect here, because `authenticate` verifies them. Throws `Denied` (`ambiguous_credentials`) for a
 * header with several credentials. Comes before `throttle` and `authenticate`.
 *
 * @example
 * ```ts
 * const schemes = ['Basic']
 * app.use(leaveAuthorization({ schemes }), authenticate({ verifier, anonymous: true }))
 * app.all('*', proxy({ origin, forwardAuthorization: schemes }))
 * ```
 */
export const leaveAuthorization = ({
  schemes,
}: LeaveAuthorizationOptions): MiddlewareHandler<Environment> => {
  const left = unverifiedSchemes(schemes)
  return createMiddleware<Environment>(function leaveAuthorization(c, next) {
    const received = receivedHeaders(c)
    const header = received.get('authorization')
    const scheme = header === undefined ? undefined : schemeOf(header)
    if (header === undefined || scheme === undefined || !left.includes(scheme)) return next()
    if (hasSeveralCredentials(header))
      throw new Denied({ code: 'ambiguous_credentials', check: 'authorization' })
    const fields = new Map(received)
    fields.delete('authorization')
    c.set('portcullis.receivedHeaders', { of: c.req.raw, fields })
    c.set('portcullis.unverifiedAuthorization', header)
    return next()
  })
}
