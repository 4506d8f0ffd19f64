/** The `leaveAuthorization` stage: leaves credentials of some schemes to the origin. */
import type { MiddlewareHandler } from 'hono'
import {
  refuseSeveralCredentials,
  schemeOf,
  unverifiedSchemes,
} from '../access/tokens/credential.ts'
import type { TokenSources } from '../access/tokens/token-sources.ts'
import { Denied } from '../errors.ts'
import type { ReceivedHeadersVariables, UnverifiedAuthorizationVariables } from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { receivedHeaders } from './request-headers.ts'

export interface LeaveAuthorizationOptions {
  /** As in `forwardAuthorization` of a route: `['Basic']`. Compared without case (RFC 9110 section 11.1). */
  readonly schemes: readonly string[]
  /** As for `authenticate`. */
  readonly sources?: Pick<TokenSources, 'isPresent'> | undefined
}

type Environment = {
  Variables: UnverifiedAuthorizationVariables & Partial<ReceivedHeadersVariables>
}

/**
 * Hides an `Authorization` header of one of the schemes from the stages after it, so that its caller is
 * anonymous, and keeps it for `proxy`. Does NOT verify it: the origin does. `Bearer` and `DPoP` have no
 * effect here, because `authenticate` verifies them. Throws `Denied`:
 *
 * - `ambiguous_credentials` for a header with several credentials, and for a credential of the gateway
 *   in another source: the origin would receive two identities.
 * - `malformed_request` for a list whose quotation marks do not match.
 *
 * A ban of the address's credentials refuses the request in `admit`. If the ban cannot be checked,
 * `admit` throws `Unavailable`, unless a limit says `onUnavailable: 'allow'`. Comes before `throttle` and
 * `authenticate`.
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
  sources,
}: LeaveAuthorizationOptions): MiddlewareHandler<Environment> => {
  const left = unverifiedSchemes(schemes)
  return createMiddleware<Environment>(function leaveAuthorization(c, next) {
    const received = receivedHeaders(c)
    const header = received.get('authorization')
    const scheme = header === undefined ? undefined : schemeOf(header)
    if (header === undefined || scheme === undefined || !left.includes(scheme)) return next()
    refuseSeveralCredentials(header)
    const fields = new Map(received)
    fields.delete('authorization')
    if (sources?.isPresent(fields))
      throw new Denied({ code: 'ambiguous_credentials', check: 'sources' })
    c.set('portcullis.receivedHeaders', { of: c.req.raw, fields })
    c.set('portcullis.unverifiedAuthorization', header)
    return next()
  })
}
