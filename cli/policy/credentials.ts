/** The variables of the gateway's own credentials at origins. Never has a value. */
import { credentialsOfRoute } from '../../src/policy/credentials.ts'
import type { Policy } from '../../src/policy/policy.ts'

export interface CheckedCredentials {
  /** What an origin gets, in words. */
  readonly words: string
  /** Each with the name of its variable. Empty: all variables are set. */
  readonly mistakes: readonly string[]
}

/** Returns the credentials that routes of the policy use. `given` has all variables. */
export function checkedCredentials(
  policy: Pick<Policy, 'routes' | 'origins'>,
  given: Readonly<Record<string, string | undefined>>,
): readonly CheckedCredentials[] {
  const all = new Set(policy.routes.flatMap((route) => credentialsOfRoute(route, policy) ?? []))
  return [...all].map(({ words, mistakesIn }) => ({
    words,
    mistakes: [...mistakesIn(given)].map(([variable, text]) => `${variable}: ${text}`),
  }))
}
