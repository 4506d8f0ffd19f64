/** The `admit` stage: one round trip that tells whether this token and this budget still hold. */
import { createMiddleware } from 'hono/factory'
import type { Admission, AdmissionVerdict } from '../admission/admission.ts'
import type { LimitRequest } from '../admission/limit.ts'
import { limitKeyOf } from '../admission/limit-key.ts'
import type { DeferredLimit } from '../admission/reference-admission.ts'
import { reasonOfDenial } from '../audit/reason.ts'
import {
  type ClientAddressVariables,
  type CredentialVariables,
  callerOf,
  clientAddressOf,
  type PendingCredential,
  type PrincipalVariables,
  type RateLimitVariables,
  type RelationVariables,
} from '../context.ts'
import { Denied } from '../errors.ts'
import type { PolicyLimit } from '../policy.ts'
import type { LimitSubject } from '../policy-definition.ts'
import { setRateLimitHeaders } from '../rate-limit-headers.ts'
import { writeHeaders } from '../response-headers.ts'
import type { Principal } from '../tokens/principal.ts'
import { leaseMistake } from '../validators/lease.ts'
import { LIMIT_NAME } from '../validators/policy.ts'
import { observe } from './observe.ts'
import { type RelationOptions, relationToAsk } from './relation.ts'
import { waitUntilOf } from './wait-until.ts'

type Environment = {
  Variables: PrincipalVariables &
    CredentialVariables &
    ClientAddressVariables &
    RateLimitVariables &
    RelationVariables
}

export interface AdmitOptions {
  /** From `createAdmission({ store, now })`. */
  readonly admission: Admission
  /** Limits of this route, each with its name; refused when any is exhausted. Default none. */
  readonly limits?: readonly PolicyLimit[]
  /** Whether the policy only observes its automatic bans. Default false. */
  readonly observesBans?: boolean
  /**
   * Whether Redis is asked about each request, though the policy may let isolates go by what they know
   * (`revocation.maxStalenessMs`). Default false.
   */
  readonly strict?: boolean
  /** The relation that `authorize` demands, to be asked for in the same call. Default none. */
  readonly relation?: RelationOptions | undefined
}

/**
 * Refuses revoked and cut-off tokens, used proofs of possession, banned callers and spent budgets,
 * and tells the consulted limits in `RateLimit` headers. Of an opaque token or an API key that this
 * isolate does not know, it finds out whose it is in the same round trip, sets `principal`, and
 * refuses what Redis does not know (`token_rejected`); a limit that counts by a function costs a
 * second one then, since the function is shown the principal. What limits and bans in observe mode
 * would have refused is told to the audit event alone. Needs `authenticate` and
 * `clientAddress` before it. Throws `Unavailable` when Redis cannot tell: revocation fails closed
 * always, a limit as its `onUnavailable` says. What the admission wants to renew, it does behind the
 * answer. With `relation` it learns whether the caller has that, sets `relation`, and refuses nobody for
 * it: that is `authorize`.
 *
 * @example
 * ```ts
 * const admission = createAdmission({ store: createUpstashAdmissionStore(rest), now: Date.now })
 * app.use(
 *   admit({
 *     admission,
 *     limits: [
 *       { name: 'standard', limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
 *     ],
 *   }),
 * )
 * ```
 */
export const admit = ({
  admission,
  limits = [],
  observesBans = false,
  strict = false,
  relation,
}: AdmitOptions) => {
  for (const limit of limits) checkLimit(limit)
  if (new Set(limits.map(({ name }) => name)).size < limits.length)
    throw new TypeError('admit: a limit is listed twice')
  const rules = limits.map((rule) => ({ rule, keyOf: limitKey(rule) }))
  return createMiddleware<Environment>(async function admit(c, next) {
    const { reference, proof } =
      (c.get('pending') as PendingCredential | undefined) ?? NOTHING_PENDING
    const address = clientAddressOf(c)
    let verdict: AdmissionVerdict
    if (reference === undefined) {
      const principal = callerOf(c)
      const of: LimitSubject = { request: c.req.raw, principal, address }
      const requests: LimitRequest[] = []
      for (const { rule, keyOf } of rules) {
        const key = keyOf(of)
        requests.push({ rule, key: typeof key === 'string' ? key : await key })
      }
      const asked =
        relation === undefined || principal === null
          ? undefined
          : relationToAsk(c, relation, principal)
      const request = { principal, address, limits: requests, proof, observesBans, strict }
      if (asked === undefined) verdict = await admission.admit(request)
      else {
        verdict = await admission.admit({ ...request, relation: asked.query })
        asked.tell(verdict.relation)
      }
    } else {
      const of = { request: c.req.raw, address }
      const deferred = await Promise.all(rules.map((each) => deferredLimit(each, of)))
      const resolved = await admission.admitReference({
        reference,
        proof,
        address,
        limits: deferred,
        observesBans,
      })
      // Of a refused one too: the audit event tells whose it was.
      if (resolved.principal !== undefined) c.set('principal', resolved.principal)
      verdict = resolved
    }
    c.set('rateLimits', verdict.limits)
    c.set('uncountedLimits', verdict.uncounted)
    for (const denial of verdict.observed) observe(c, reasonOfDenial(denial))
    if (verdict.denial !== undefined) throw new Denied(verdict.denial)
    const { limits: told, renewal } = verdict
    if (renewal !== undefined) waitUntilOf(c)(renewal())
    await next()
    if (told.length > 0)
      writeHeaders(c, (headers) => setRateLimitHeaders(headers, told, Date.now()))
  })
}

const NOTHING_PENDING: PendingCredential = { reference: undefined, proof: undefined }

/** The name stands between quotes in headers and in keys; the numbers go to the limiter as text. */
function checkLimit({ name, limit, windowSeconds, engine, cost = 1, lease }: PolicyLimit): void {
  if (!LIMIT_NAME.test(name)) throw new TypeError(`admit: "${name}" is no name of a limit`)
  for (const number of [limit, windowSeconds, cost]) {
    if (!Number.isSafeInteger(number) || number < 1)
      throw new RangeError(`admit: ${name} needs whole numbers above 0, not ${number}`)
  }
  if (cost > limit || (cost > 1 && engine === 'upstash'))
    throw new RangeError(`admit: ${name} cannot count requests that cost ${cost}`)
  const mistake = leaseMistake({ lease, windowSeconds, cost, engine })
  if (mistake !== undefined) throw new RangeError(`admit: ${name}: lease ${mistake}`)
}

type LimitKey = (of: LimitSubject) => string | Promise<string>

/**
 * Which limit's window counts, and whose, as a key; kept per principal where the principal decides
 * it.
 */
function limitKey({ by, name }: PolicyLimit): LimitKey {
  const ofAddress: LimitKey = ({ address }) =>
    limitKeyOf({ name, by: 'address' }, { issuer: '', value: address })
  if (by === 'address') return ofAddress
  if (typeof by === 'function')
    return (of) => limitKeyOf({ name, by }, { issuer: '', value: by(of) })
  const known = new WeakMap<Principal, string>()
  const derive = async (principal: Principal): Promise<string> => {
    // A client is one of the token issuer's, however the subject came by its token.
    const issuer = by === 'client' ? principal.tokenIssuer : principal.issuer
    // Callers without a client or tenant share one window per issuer: strict, and no way around.
    const key = await limitKeyOf({ name, by }, { issuer, value: principal[by] ?? '' })
    known.set(principal, key)
    return key
  }
  return function keyOf(of) {
    // An anonymous caller on a route that asks for none of this counts by address.
    if (of.principal === null) return ofAddress(of)
    return known.get(of.principal) ?? derive(of.principal)
  }
}

/** A limit of a caller whose principal the store knows: it names the window itself if it can. */
async function deferredLimit(
  { rule, keyOf }: { readonly rule: PolicyLimit; readonly keyOf: LimitKey },
  { request, address }: Omit<LimitSubject, 'principal'>,
): Promise<DeferredLimit> {
  const { by } = rule
  const of = (principal: Principal | null) => keyOf({ request, principal, address })
  if (typeof by === 'function') return { rule, window: undefined, keyOf: of }
  return { rule, window: by === 'address' ? { key: await of(null) } : { by }, keyOf: of }
}
