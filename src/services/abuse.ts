/** What counts failed authentications and violations, made of the gateway's Redis. */
import type { Abuse } from '../admission/abuse-definition.ts'
import {
  type AuthenticationFailures,
  createAuthenticationFailures,
} from '../admission/authentication-failures.ts'
import { createViolations, type Violations } from '../admission/violations.ts'
import { createFailureCounter } from '../stores/upstash/authentication-failures.ts'
import { createBanList } from '../stores/upstash/bans.ts'
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
  return ({ authenticationFailures, bans: rule }) => ({
    failures:
      authenticationFailures &&
      createAuthenticationFailures({ ...authenticationFailures, counter, now }),
    violations:
      rule &&
      createViolations({
        rule,
        counter: createViolationCounter(rest),
        bans: createBanList(rest, now),
        now,
      }),
  })
}
