/** Rules in observe mode: records what they would have refused. */
import type { ObservedVariables } from './context.ts'

/** The part of Hono's `Context` that is needed (`Context` itself is invariant). */
interface Carrier {
  get(name: never): unknown
  set(name: never, value: never): void
}

/**
 * Records for the audit event that a rule would have refused this request. `reason` is from
 * `reasonOfDenial`, such as `rate_limited:standard`. The request continues. A reason is recorded
 * once.
 */
export function observe(c: Carrier, reason: string): void {
  const variables = c as {
    get(name: 'observed'): ObservedVariables['observed'] | undefined
    set(name: 'observed', value: ObservedVariables['observed']): void
  }
  const noted = variables.get('observed')
  if (noted === undefined) variables.set('observed', [reason])
  else if (!noted.includes(reason)) noted.push(reason)
}
