/** Routes that the gateway answers itself, as rows of the table that guards and audit know. */
import type { PolicyRoute } from '../policy.ts'

type Guarded = 'method' | 'path' | 'permission' | 'limits' | 'input' | 'maxBodyBytes'

/** A row of which nothing goes to an origin. Without a permission it is open to anyone. */
export function ownRoute(
  guarded: Pick<PolicyRoute, 'method' | 'path' | 'maxBodyBytes'> &
    Partial<Pick<PolicyRoute, Guarded>>,
): PolicyRoute {
  return {
    permission: undefined,
    limits: [],
    input: {},
    originTimeoutMs: 0,
    forwardAuthorization: false,
    forwardCookies: false,
    webSocketOrigins: [],
    dpop: false,
    coalesce: false,
    ...guarded,
  }
}
