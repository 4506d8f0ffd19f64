/** The `admit` stage: one round trip that tells whether this token and this budget still hold. */
import { createMiddleware } from 'hono/factory'
import type { Admission } from '../admission/admission.ts'
import { keyPart } from '../admission/key.ts'
import type { LimitRequest } from '../admission/limit.ts'
import {
  type ClientAddressVariables,
  callerOf,
  clientAddressOf,
  type PrincipalVariables,
  type RateLimitVariables,
} from '../context.ts'
import { Denied } from '../errors.ts'
import type { LimitSubject, PolicyLimit } from '../policy.ts'
import { setRateLimitHeaders } from '../rate-limit-headers.ts'
import { mutableHeaders } from '../response-headers.ts'
import type { Principal } from '../tokens/principal.ts'
import { LIMIT_NAME } from '../validators/policy.ts'

export interface AdmitOptions {
  /** From `createAdmission({ store, now })`. */
  readonly admission: Admission
  /** Limits of this route, each with its name; refused when any is exhausted. Default none. */
  readonly limits?: readonly PolicyLimit[]
}

/**
 * Refuses revoked and cut-off tokens, banned callers and spent budgets, and tells the consulted
 * limits in `RateLimit` headers. Needs `authenticate` and `clientAddress` before it. Throws
 * `Unavailable` when Redis cannot tell: revocation fails closed always, a limit as its
 * `onUnavailable` says.
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
export const admit = ({ admission, limits = [] }: AdmitOptions) => {
  for (const limit of limits) checkLimit(limit)
  const keysOfLimits = limits.map(limitKey)
  return createMiddleware<{
    Variables: PrincipalVariables & ClientAddressVariables & RateLimitVariables
  }>(async function admit(c, next) {
    const principal = callerOf(c)
    const address = clientAddressOf(c)
    const of: LimitSubject = { request: c.req.raw, principal, address }
    const requests: LimitRequest[] = []
    for (const [index, rule] of limits.entries()) {
      const key = keysOfLimits[index]?.(of)
      if (key !== undefined) requests.push({ rule, key: typeof key === 'string' ? key : await key })
    }
    const verdict = await admission.admit({ principal, address, limits: requests })
    c.set('rateLimits', verdict.limits)
    c.set('uncountedLimits', verdict.uncounted)
    if (verdict.denial !== undefined) throw new Denied(verdict.denial)
    await next()
    if (verdict.limits.length > 0)
      setRateLimitHeaders(mutableHeaders(c), verdict.limits, Date.now())
  })
}

/** The name stands between quotes in headers and in keys; the numbers go to the limiter as text. */
function checkLimit({ name, limit, windowSeconds }: PolicyLimit): void {
  if (!LIMIT_NAME.test(name)) throw new TypeError(`admit: "${name}" is no name of a limit`)
  for (const number of [limit, windowSeconds]) {
    if (!Number.isSafeInteger(number) || number < 1)
      throw new RangeError(`admit: ${name} needs whole numbers above 0, not ${number}`)
  }
}

type LimitKey = (of: LimitSubject) => string | Promise<string>

/** Which limit's window counts, and whose, as a key; kept per principal where the principal decides it. */
function limitKey({ by, name }: PolicyLimit): LimitKey {
  const byAddress = `${name}:address`
  if (by === 'address') return ({ address }) => joined(byAddress, keyPart(address))
  if (typeof by === 'function') return (of) => joined(`${name}:custom`, keyPart(by(of)))
  const known = new WeakMap<Principal, string>()
  const derive = async (principal: Principal): Promise<string> => {
    // Callers without a client or tenant share one window per issuer: strict, and no way around.
    const value = principal[by] ?? ''
    const key = `${name}:${by}:${await keyPart(principal.issuer)}:${await keyPart(value)}`
    known.set(principal, key)
    return key
  }
  return function keyOf({ principal, address }) {
    // An anonymous caller on a route that asks for none of this counts by address.
    if (principal === null) return joined(byAddress, keyPart(address))
    return known.get(principal) ?? derive(principal)
  }
}

function joined(kind: string, part: string | Promise<string>): string | Promise<string> {
  return typeof part === 'string' ? `${kind}:${part}` : part.then((text) => `${kind}:${text}`)
}
