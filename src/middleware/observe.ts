/** Rules in observe mode: what they would have refused is let through and written down. */
import type { ObservedVariables } from '../context.ts'

/** The slice of Hono's `Context` that is needed (`Context` itself is invariant). */
interface Carrier {
  get(name: never): unknown
  set(name: never, value: never): void
}

/**
 * Notes for the audit event that this request would have been refused, with `reason` as
 * `reasonOfDenial` tells it: `rate_limited:standard`. The request goes on. A reason that was noted
 * before is not noted again.
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
