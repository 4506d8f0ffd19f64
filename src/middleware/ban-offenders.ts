/** The `banOffenders` stage: who is refused too often is banned. */
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Offender, Violation, Violations } from '../admission/violations.ts'
import {
  type ClientAddressVariables,
  clientAddressOf,
  type PrincipalVariables,
  type TimelineVariables,
} from '../context.ts'
import { type Denial, Denied } from '../errors.ts'
import type { PolicyLimit } from '../policy.ts'
import { AUTHENTICATION_FAILURES_LIMIT } from './throttle.ts'
import { waitUntilOf } from './wait-until.ts'

export interface BanOffendersOptions {
  /** From `createViolations`. */
  readonly violations: Violations
  /** Limits of this route, as `admit` gets them; of others nothing is counted. Default none. */
  readonly limits?: readonly PolicyLimit[]
}

/** The client hung up or stalled: nothing was found in what it sent. */
const BODY_CUT_OFF = 'body_incomplete'

type Environment = {
  Variables: ClientAddressVariables & Partial<PrincipalVariables & TimelineVariables>
}

/**
 * Counts violations behind the answer: credentials that are not good (`token_rejected`,
 * `dpop_rejected`) for their address; limits that a caller has exhausted alone, and input that
 * `inspect` refused, for the subject that is known, else for the address. Tokens and proofs that
 * have merely expired are none, nor are requests that `throttle` refuses unread, nor limits whose
 * window is others' as well. A malformed request counts where the timeline of `audit` tells that
 * `inspect` refused it.
 *
 * Whoever is banned is told so by `admit`, which a bad credential never reaches: where this isolate
 * knows that the address is banned, its refusal becomes `banned`, too. Comes after `clientAddress`
 * and before `throttle`.
 *
 * @example
 * ```ts
 * const violations = createViolations({ rule: DEFAULT_BANS, counter, now: Date.now })
 * app.use(clientAddress(), banOffenders({ violations, limits }), authenticate({ verifier }))
 * ```
 */
export const banOffenders = ({ violations, limits = [] }: BanOffendersOptions) => {
  const scopes = new Map(limits.map(({ name, by }) => [name, by]))
  return createMiddleware<Environment>(async function banOffenders(c, next) {
    await next()
    // Hono has turned what a guard threw into an answer, and keeps it here.
    if (c.error !== undefined && c.error instanceof Denied)
      judge(c, c.error.denial, violations, scopes)
  })
}

/** By the name of a limit, whose window it counts. */
type Scopes = ReadonlyMap<string, PolicyLimit['by']>

function judge(
  c: Context<Environment>,
  denial: Denial,
  violations: Violations,
  scopes: Scopes,
): void {
  const address = clientAddressOf(c)
  if (denial.code === 'banned') {
    if (denial.by === 'address') violations.learn(address, denial.retryAfterSeconds)
    return
  }
  if (isCredential(denial)) {
    const retryAfterSeconds = violations.banSeconds(address, waitUntilOf(c))
    if (retryAfterSeconds !== undefined) {
      // Hono would put the headers of the first answer, its challenge as well, into the second.
      c.res = undefined
      throw new Denied({ code: 'banned', by: 'address', retryAfterSeconds })
    }
  }
  const of = violationOf(denial, c, scopes)
  if (of === undefined) return
  const principal = of === 'credential' ? undefined : c.get('principal')
  const by: Offender =
    principal == null
      ? { kind: 'address', value: address }
      : { kind: 'subject', issuer: principal.issuer, value: principal.subject }
  violations.record({ of, by, from: address }, waitUntilOf(c))
}

/** Refused for its credential, looked at or not. */
function isCredential(denial: Denial): boolean {
  switch (denial.code) {
    case 'token_rejected':
    case 'dpop_rejected':
      return true
    case 'rate_limited':
      return denial.limit === AUTHENTICATION_FAILURES_LIMIT
    default:
      return false
  }
}

function violationOf(
  denial: Denial,
  c: Context<Environment>,
  scopes: Scopes,
): Violation['of'] | undefined {
  switch (denial.code) {
    case 'token_rejected':
      return denial.check === 'exp' ? undefined : 'credential'
    case 'dpop_rejected':
      return denial.check === 'iat' ? undefined : 'credential'
    case 'rate_limited':
      return denial.limit !== AUTHENTICATION_FAILURES_LIMIT &&
        isOwnWindow(scopes.get(denial.limit), c.get('principal') != null)
        ? 'limit'
        : undefined
    case 'call_refused':
    case 'signature_matched':
      return 'inspection'
    case 'request_malformed':
      // The stage that was entered last is the one that refused.
      return c.get('timeline')?.current() === 'inspect' && denial.check !== BODY_CUT_OFF
        ? 'inspection'
        : undefined
    default:
      return undefined
  }
}

/**
 * Whether it was the caller alone who exhausted a window. Of a tenant's, a client's, an address' or
 * what a function names, one may have spent what the others are then refused for.
 */
function isOwnWindow(by: PolicyLimit['by'] | undefined, isKnown: boolean): boolean {
  return by === (isKnown ? 'subject' : 'address')
}
