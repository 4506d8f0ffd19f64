/** Which credentials of the gateway itself a route uses at its origin. */
import type { OriginCredentials } from '../origin/credentials.ts'
import type { Policy } from './policy.ts'
import type { PolicyRoute } from './route.ts'

/** Returns the credentials of a route, or else those of its origin. */
export const credentialsOfRoute = (
  route: PolicyRoute,
  { origins }: Pick<Policy, 'origins'>,
): OriginCredentials | undefined => route.credentials ?? origins?.credentialsOf?.(route)
