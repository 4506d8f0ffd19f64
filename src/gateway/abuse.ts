/** Composes the counters of failed authentications and of violations. */

import {
  type AuthenticationFailures,
  createAuthenticationFailures,
} from '../abuse/authentication-failures.ts'
import type { Abuse } from '../abuse/definition.ts'
import { createFailureCounter } from '../abuse/redis/authentication-failures.ts'
import { createViolationCounter } from '../abuse/redis/violations.ts'
import { createViolations, type Violations } from '../abuse/violations.ts'
import { createAddressList } from '../http/address-list.ts'
import type { RedisRest } from '../redis/rest.ts'

export interface AbuseServices {
  readonly failures: AuthenticationFailures | undefined
  readonly violations: Violations | undefined
}

/** Creates the counters that the policy configures. `now` is in milliseconds since the epoch. */
export function abuseServices(
  { authenticationFailures, bans: rule, exempt }: Abuse,
  rest: RedisRest,
  now: () => number,
): AbuseServices {
  const isExempt = createAddressList(exempt)
  return {
    failures:
      authenticationFailures &&
      createAuthenticationFailures({
        ...authenticationFailures,
        counter: createFailureCounter(rest),
        now,
        isExempt,
      }),
    violations:
      rule && createViolations({ rule, counter: createViolationCounter(rest, now), now, isExempt }),
  }
}
