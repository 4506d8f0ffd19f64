/** Routes that the gateway answers itself, as rows of the route table for guards and audit. */
import type { PolicyRoute } from './policy.ts'

type Guarded = 'method' | 'path' | 'permission' | 'limits' | 'input' | 'maxBodyBytes'

/**
 * Creates a row without an origin. Without a permission, the route is open to anonymous callers.
 */
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
