/** Adds a route with browser sessions to a policy. */
import { signIn } from '../../src/features/sign-in/index.ts'
import type { Policy } from '../../src/index.ts'
import { IN_SESSION, LISTED } from './variants.ts'

/** Adds a route below `prefix` that differs from the list of orders only in the session. */
export function browserPolicy(policy: Policy, prefix: string): Policy {
  const listed = policy.routes.find(
    ({ method, path }) => method === 'GET' && path === prefix + LISTED,
  )
  if (listed === undefined) throw new Error(`no route GET ${prefix}${LISTED}`)
  const inSession = { ...listed, path: prefix + IN_SESSION + LISTED, session: {} }
  return {
    ...policy,
    features: [...policy.features, signIn()],
    routes: [...policy.routes, inSession],
  }
}
