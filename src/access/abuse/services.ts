/** What counts abuse: bad credentials by address, and violations that lead to bans. */
import { createAddressList } from '../../http/address-list.ts'
import { createAuthenticationFailures, type FailureCounter } from './authentication-failures.ts'
import type { Abuse } from './definition.ts'
import { createViolations, type ViolationCounter } from './violations.ts'

export interface AbuseCounters {
  readonly failures: FailureCounter
  readonly violations: ViolationCounter
}

/** Undefined: the policy turned it off. */
export type AbuseServices = ReturnType<typeof createAbuseServices>

/**
 * Creates what the policy configures. `now` is in milliseconds since the epoch. `max` bounds the
 * addresses and offenders in memory, default 10,000.
 */
export function createAbuseServices(
  { authenticationFailures, bans: rule, exempt }: Abuse,
  counters: AbuseCounters,
  now: () => number,
  max?: number,
) {
  const isExempt = createAddressList(exempt)
  return {
    failures:
      authenticationFailures &&
      createAuthenticationFailures({
        ...authenticationFailures,
        counter: counters.failures,
        now,
        isExempt,
        maxAddresses: max,
      }),
    violations:
      rule &&
      createViolations({
        rule,
        counter: counters.violations,
        now,
        isExempt,
        maxOffenders: max,
      }),
  }
}
