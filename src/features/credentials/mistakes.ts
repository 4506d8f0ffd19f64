/** Finds fields of a route that contradict the gateway's own credentials at its origin. */
import type { CredentialedRoute } from '../../origin/credentials.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'

/** Yields the mistakes, with paths relative to the route. `header`: the lower-case name of the one that carries them. */
export function* mistakesInRoute(
  header: string | undefined,
  { forwardAuthorization, requestHeaders = {} }: CredentialedRoute,
): Generator<Mistake> {
  if (header === undefined) return
  const conflict = (field: string, how: string) =>
    mistakeAt('conflict', [field], `${field}: ${how} the header ${header} of the credentials`)
  if (header === 'authorization' && forwardAuthorization)
    yield conflict('forwardAuthorization', 'cannot be combined with')
  const { set = {}, remove = [] } = requestHeaders
  if ([...Object.keys(set), ...remove].some((name) => name.toLowerCase() === header))
    yield conflict('requestHeaders', 'must not change')
}
