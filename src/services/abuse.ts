/** What counts failed authentications and violations, made of the gateway's Redis. */
import type { Abuse } from '../admission/abuse-definition.ts'
import { createAddressList } from '../admission/address-list.ts'
import {
  type AuthenticationFailures,
  createAuthenticationFailures,
} from '../admission/authentication-failures.ts'
import { createViolations, type Violations } from '../admission/violations.ts'
import { createFailureCounter } from '../stores/upstash/authentication-failures.ts'
import type { RedisRest } from '../stores/upstash/rest.ts'
import { createViolationCounter } from '../stores/upstash/violations.ts'

/** Makes the counts of an isolate; how many are too many is the policy's to say. */
export type AbuseServices = (abuse: Abuse) => {
  /** Undefined where bad credentials are not counted. */
  readonly failures: AuthenticationFailures | undefined
  /** Undefined where nobody is banned automatically. */
  readonly violations: Violations | undefined
}

/** `now` is milliseconds since the epoch. */
export function abuseServices(rest: RedisRest, now: () => number): AbuseServices {
  const counter = createFailureCounter(rest)
  return ({ authenticationFailures, bans: rule, exempt }) => {
    const isExempt = createAddressList(exempt)
    return {
      failures:
        authenticationFailures &&
        createAuthenticationFailures({ ...authenticationFailures, counter, now, isExempt }),
      violations:
        rule &&
        createViolations({ rule, counter: createViolationCounter(rest, now), now, isExempt }),
    }
  }
}
