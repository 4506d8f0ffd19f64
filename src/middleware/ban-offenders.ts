/** The `banOffenders` stage: who is refused too often is banned. */
import { createMiddleware } from 'hono/factory'
import type { Offender, Violation, Violations } from '../admission/violations.ts'
import {
  type ClientAddressVariables,
  clientAddressOf,
  type PrincipalVariables,
} from '../context.ts'
import { Denied } from '../errors.ts'
import { AUTHENTICATION_FAILURES_LIMIT } from './throttle.ts'
import { waitUntilOf } from './wait-until.ts'

export interface BanOffendersOptions {
  /** From `createViolations`. */
  readonly violations: Violations
}

type Environment = { Variables: ClientAddressVariables & Partial<PrincipalVariables> }

/**
 * Counts violations behind the answer: credentials that are not good (`token_rejected`,
 * `dpop_rejected`) for their address, and exhausted limits for the subject that is known, else for the
 * address. Refuses nobody by itself: a ban is what `admit` reads. Requests that `throttle` refuses
 * unread count no more. Comes after `clientAddress` and before `throttle`.
 *
 * @example
 * ```ts
 * const violations = createViolations({ rule: DEFAULT_BANS, counter, bans, now: Date.now })
 * app.use(clientAddress(), banOffenders({ violations }), authenticate({ verifier }))
 * ```
 */
export const banOffenders = ({ violations }: BanOffendersOptions) =>
  createMiddleware<Environment>(async function banOffenders(c, next) {
    await next()
    const violation = violationOf(c.error)
    if (violation === undefined) return
    const principal = violation === 'limit' ? c.get('principal') : undefined
    const offender: Offender =
      principal == null
        ? { kind: 'address', value: clientAddressOf(c) }
        : { kind: 'subject', issuer: principal.issuer, value: principal.subject }
    violations.record(offender, violation, waitUntilOf(c))
  })

/** Hono has turned what a guard threw into an answer, and keeps it in the context. */
function violationOf(error: unknown): Violation | undefined {
  if (!(error instanceof Denied)) return undefined
  const { denial } = error
  switch (denial.code) {
    case 'token_rejected':
    case 'dpop_rejected':
      return 'credential'
    case 'rate_limited':
      return denial.limit === AUTHENTICATION_FAILURES_LIMIT ? undefined : 'limit'
    default:
      return undefined
  }
}
