/** What counts failed authentications, made of the gateway's Redis. */
import type { AbuseDefinition } from '../admission/abuse-definition.ts'
import {
  type AuthenticationFailures,
  createAuthenticationFailures,
} from '../admission/authentication-failures.ts'
import { createFailureCounter } from '../stores/upstash/authentication-failures.ts'
import type { RedisRest } from '../stores/upstash/rest.ts'

/** Makes the count of an isolate; how many are too many is the policy's to say. */
export type FailuresOf = (abuse: Required<AbuseDefinition>) => AuthenticationFailures

/** `now` is milliseconds since the epoch. */
export function failureServices(rest: RedisRest, now: () => number): FailuresOf {
  const counter = createFailureCounter(rest)
  return ({ authenticationFailures }) =>
    createAuthenticationFailures({ ...authenticationFailures, counter, now })
}
