/** The `admit` stage: checks revocation, bans and limits in one round trip. */

import type { Context } from 'hono'
import { type Admission, type AdmissionVerdict, isHeldUp } from '../access/admission/admission.ts'
import type { LimitRequest, Meter, RateLimit } from '../access/admission/limit.ts'
import { type LimitWindow, limitKeyOf, windowOfPrincipal } from '../access/admission/limit-key.ts'
import type { DeferredLimit } from '../access/admission/reference-resolver.ts'
import type { Principal } from '../access/principal.ts'
import { reasonOfDenial } from '../audit/reason.ts'
import { Denied } from '../errors.ts'
import { writeHeaders } from '../http/response-headers.ts'
import { attached } from '../isolate/attached.ts'
import type { LimitSubject } from '../policy/definition.ts'
import type { PolicyLimit } from '../policy/policy.ts'
import { leaseMistake } from '../validators/lease.ts'
import { LIMIT_NAME } from '../validators/names.ts'
import {
  type CredentialVariables,
  callerOf,
  clientAddressOf,
  type HeldUpVariables,
  observe,
  type RateLimitVariables,
  type RelationVariables,
  type UnverifiedAuthorizationVariables,
  waitUntilOf,
} from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import { setRateLimitHeaders } from './rate-limit-headers.ts'
import { includedQuery, type RelationOptions, resolveRelation } from './relation.ts'

type Environment = {
  Variables: RateLimitVariables &
    RelationVariables &
    HeldUpVariables &
    Partial<CredentialVariables & UnverifiedAuthorizationVariables>
}

/** A meter whose limit holds slots for requests in flight. */
export interface HoldingMeter extends Meter {
  /** Runs the rest of the pipeline, and holds the slots of `limits` until the response ends. */
  hold(limits: readonly RateLimit[], c: Context, next: () => Promise<void>): Promise<void>
}

export interface AdmitOptions {
  readonly admission: Admission
  /** Default none. */
  readonly limits?: readonly PolicyLimit[]
  /** Calls Redis even if `revocation.maxStalenessMs` allows a local decision. Default false. */
  readonly strict?: boolean
  /** The relation that `authorize` requires. Default none. */
  readonly relation?: RelationOptions | undefined
  /** The clock of `admission`, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Refuses revoked tokens, replayed proofs of possession, banned callers and requests over a limit,
 * in one round trip. Reports the checked limits in `RateLimit` headers. Limits and bans in observe
 * mode refuse nothing: the audit event names what they would have refused.
 *
 * The same round trip resolves an opaque token or an API key that this isolate has not cached
 * (`token_rejected` if Redis has no record of it), and checks `relation`. A limit that counts by a
 * function then costs a second one, because the function needs the principal.
 *
 * Must run after `authenticate` and `clientAddress`. Throws `Unavailable` if Redis fails:
 * revocation always fails closed, a limit follows its `onUnavailable`. Does NOT refuse a caller
 * without the relation: `authorize` does.
 *
 * @example
 * ```ts
 * const admission = createAdmission({ store: createUpstashAdmissionStore(rest), now: Date.now })
 * const limit = { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } as const
 * app.use(admit({ admission, limits: [{ name: 'standard', ...limit }] }))
 * ```
 */
export const admit = ({
  admission,
  limits = [],
  strict = false,
  relation,
  now = () => Date.now(),
}: AdmitOptions) => {
  for (const limit of limits) checkLimit(limit)
  if (new Set(limits.map(({ name }) => name)).size < limits.length)
    throw new TypeError('admit: duplicate limit name')
  const rules = limits.map((rule) => ({ rule, keyOf: limitKey(rule) }))
  return createMiddleware<Environment>(async function admit(c, next) {
    const pending = c.get('portcullis.pending')
    const proof = pending?.proof
    const address = clientAddressOf(c, 'admit')
    const startMs = Date.now()
    let verdict: AdmissionVerdict
    if (pending?.reference === undefined) {
      const principal = callerOf(c, 'admit')
      const of: LimitSubject = { request: c.req.raw, principal, address }
      const requests: LimitRequest[] = []
      for (const { rule, keyOf } of rules) {
        const window = keyOf(of)
        const { key, everywhere, owner } = 'key' in window ? window : await window
        const request = { rule, key, everywhere, owner }
        requests.push(rule.meter ? await rule.meter.complete(request, principal) : request)
      }
      const included =
        relation === undefined || principal === null
          ? undefined
          : includedQuery(resolveRelation(c, relation, principal), relation.checker)
      verdict = await admission.admit({
        principal,
        address,
        limits: requests,
        proof,
        strict,
        isUnverified: c.get('portcullis.unverifiedAuthorization') !== undefined,
        relation: included?.query,
      })
      included?.answered(verdict.relation)
    } else {
      const of = { request: c.req.raw, address }
      const deferred = await Promise.all(rules.map((each) => deferredLimit(each, of)))
      const resolved = await admission.admitReference({
        reference: pending.reference,
        proof,
        address,
        limits: deferred,
      })
      // An API key that has ended names its caller, for the audit event: the verdict refuses it.
      const identified = resolved.principal ?? resolved.refused
      if (identified !== undefined) pending.identified(identified)
      verdict = resolved
    }
    if (isHeldUp(startMs)) c.set('portcullis.heldUpSinceMs', startMs)
    c.set('portcullis.rateLimits', verdict.limits)
    c.set('portcullis.uncountedLimits', verdict.uncounted)
    for (const denial of verdict.observed) observe(c, reasonOfDenial(denial))
    if (verdict.denial !== undefined) {
      // A slot is taken while the store finds out that a session has ended.
      await Promise.all(verdict.limits.map(({ slot }) => slot?.release()))
      throw new Denied(verdict.denial)
    }
    pending?.check?.passed()
    const { limits: reported, renewal } = verdict
    if (renewal !== undefined) waitUntilOf(c)(renewal())
    const holding = reported.find(({ slot }) => slot !== undefined)
    if (holding === undefined) await next()
    else await (holding.rule.meter as HoldingMeter).hold(reported, c, next)
    if (reported.length > 0)
      writeHeaders(c, (headers) => setRateLimitHeaders(headers, reported, now()))
  })
}

/** The name is quoted in headers and part of keys; the limiter gets the numbers as text. */
function checkLimit({ name, limit, windowSeconds, engine, cost = 1, lease }: PolicyLimit): void {
  if (!LIMIT_NAME.test(name)) throw new TypeError(`admit: "${name}" is not a valid limit name`)
  for (const number of [limit, windowSeconds, cost]) {
    if (!Number.isSafeInteger(number) || number < 1)
      throw new RangeError(`admit: ${name} needs integers above 0, not ${number}`)
  }
  if (cost > limit || (cost > 1 && typeof engine === 'object'))
    throw new RangeError(
      `admit: ${name}: cost ${cost} is above the limit, or not supported by the engine`,
    )
  if (typeof engine === 'string' && engine !== 'exact')
    throw new TypeError(`admit: ${name}: engine must be 'exact' or upstash()`)
  const mistake = leaseMistake({ lease, windowSeconds, cost, engine })
  if (mistake !== undefined) throw new RangeError(`admit: ${name}: lease ${mistake}`)
}

type LimitKey = (of: LimitSubject) => LimitWindow | Promise<LimitWindow>

/** Returns the window of a limit without a principal. */
function windowOf(
  rule: Parameters<typeof limitKeyOf>[0],
  owner: string,
): LimitWindow | Promise<LimitWindow> {
  const key = limitKeyOf(rule, { issuer: '', value: owner })
  return typeof key === 'string' ? { key, owner } : key.then((text) => ({ key: text, owner }))
}

/** Returns a function that derives the key of the limit's window, once for each principal. */
function limitKey({ by, name, engine }: PolicyLimit): LimitKey {
  const ofAddress: LimitKey = ({ address }) => windowOf({ name, by: 'address' }, address)
  if (by === 'address') return ofAddress
  if (typeof by === 'function') return (of) => windowOf({ name, by }, by(of))
  const known = attached<Principal, LimitWindow>()
  const derive = async (principal: Principal): Promise<LimitWindow> =>
    known(principal, await windowOfPrincipal({ name, by, engine }, principal))
  // An anonymous caller on a public route counts by address.
  return (of) =>
    of.principal === null ? ofAddress(of) : (known(of.principal) ?? derive(of.principal))
}

/** The limit of a caller that the store resolves. The store names the window if it can. */
async function deferredLimit(
  { rule, keyOf }: { readonly rule: PolicyLimit; readonly keyOf: LimitKey },
  { request, address }: Omit<LimitSubject, 'principal'>,
): Promise<DeferredLimit> {
  const { by } = rule
  const of = (principal: Principal | null) => keyOf({ request, principal, address })
  const limit = { rule, keyOf: of, slot: rule.meter?.newSlot() }
  if (typeof by === 'function') return { ...limit, window: undefined }
  return { ...limit, window: by === 'address' ? await of(null) : { by } }
}
