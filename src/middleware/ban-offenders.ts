/** The `banOffenders` stage: bans callers that are refused too often. */
import type { Context } from 'hono'
import type { Offender, Violation, Violations } from '../access/abuse/violations.ts'
import { Denied } from '../errors.ts'
import { dropResponse } from '../http/replaced-response.ts'
import type { PolicyLimit } from '../policy/policy.ts'
import type { Denial } from '../problems/reasons.ts'
import {
  clientAddressOf,
  type PrincipalVariables,
  type TimelineVariables,
  waitUntilOf,
} from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { AUTHENTICATION_FAILURES_LIMIT, isFailedCredential, signerOfRefused } from './throttle.ts'

export interface BanOffendersOptions {
  readonly violations: Violations
  /** As for `admit`. Refusals by other limits do not count. Default none. */
  readonly limits?: readonly PolicyLimit[]
}

type Environment = { Variables: Partial<PrincipalVariables & TimelineVariables> }

/**
 * Counts violations after the response. A credential that may be a guess counts for its address. A limit
 * that the caller exhausted alone, and input that `inspect` refused, count for the subject if it is
 * identified, otherwise for the address. These do NOT count: a refused credential that is authentic,
 * such as a signed token that has expired or that has another audience; a request that `throttle`
 * refuses before its credential is checked; and a limit with a shared window. An anonymous request
 * without a credential counts only if bans refuse everything.
 *
 * `admit` refuses banned callers, but an invalid credential never reaches it. If this isolate has
 * cached that the address is banned, the refusal of the credential becomes `banned`. Comes after
 * `clientAddress` and before `throttle`. Needs the timeline of `audit` to count a malformed
 * request.
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
    if (c.error !== undefined && c.error instanceof Denied)
      judge(c, c.error.denial, violations, scopes)
  })
}

/** By the name of a limit: the party that it counts. */
type Scopes = ReadonlyMap<string, PolicyLimit['by']>

function judge(
  c: Context<Environment>,
  denial: Denial,
  violations: Violations,
  scopes: Scopes,
): void {
  const address = clientAddressOf(c, 'banOffenders')
  if (denial.code === 'banned') {
    if (denial.by === 'address') violations.learn(address, denial.retryAfterSeconds)
    return
  }
  const of = classifyViolation(denial, c, scopes)
  if (isCredential(denial)) {
    const retryAfterSeconds = violations.banSeconds(address, of, waitUntilOf(c))
    if (retryAfterSeconds !== undefined) {
      dropResponse(c)
      throw new Denied({ code: 'banned', by: 'address', retryAfterSeconds })
    }
  }
  if (of === undefined) return
  const principal = of === 'credential' ? undefined : c.get('portcullis.principal')
  // The ban would refuse everybody at the address except the anonymous callers who earned it.
  if (of !== 'credential' && principal == null && violations.refuses === 'credentials') return
  const by: Offender =
    principal == null
      ? { kind: 'address', value: address }
      : {
          kind: 'subject',
          issuer: principal.issuer,
          tenant: principal.tenant,
          value: principal.subject,
        }
  violations.record({ of, by, from: address }, waitUntilOf(c))
}

/** Whether the request was refused because of its credential, verified or throttled. */
const isCredential = (denial: Denial): boolean =>
  denial.code === 'rate_limited'
    ? denial.limit === AUTHENTICATION_FAILURES_LIMIT
    : isFailedCredential(denial)

function classifyViolation(
  denial: Denial,
  c: Context<Environment>,
  scopes: Scopes,
): Violation['of'] | undefined {
  switch (denial.code) {
    case 'token_rejected':
    case 'invalid_dpop_proof':
      return isGuess(denial, c) ? 'credential' : undefined
    case 'rate_limited':
      return denial.limit !== AUTHENTICATION_FAILURES_LIMIT &&
        isOwnWindow(scopes.get(denial.limit), c.get('portcullis.principal') != null)
        ? 'limit'
        : undefined
    case 'call_refused':
    case 'signature_matched':
      return 'inspection'
    case 'malformed_request':
      // The stage that was entered last refused. An incomplete body is not malformed input.
      return c.get('portcullis.timeline')?.current() === 'inspect' &&
        denial.check !== 'body_incomplete'
        ? 'inspection'
        : undefined
    default:
      return undefined
  }
}

/** An authentic credential is no guess. Nor is a proof of possession that is only too old. */
function isGuess(denial: Denial & { readonly check: string }, c: Context<Environment>): boolean {
  if (denial.code === 'invalid_dpop_proof' && denial.check === 'iat') return false
  return signerOfRefused(denial, c.get('portcullis.principal')) === undefined
}

/** Other callers may have exhausted a window of a tenant, a client or a function's value. */
function isOwnWindow(by: PolicyLimit['by'] | undefined, isKnown: boolean): boolean {
  return by === (isKnown ? 'subject' : 'address')
}
