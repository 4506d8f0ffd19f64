/** `RateLimit-Policy` and `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-11). */
import type { LimitRule, RateLimit } from '../access/admission/limit.ts'
import type { Denial } from '../problems/reasons.ts'

/** Each isolate formats the policy item of a rule once. */
const policyItems = new WeakMap<LimitRule, string>()

function policyItem({ rule, limit }: RateLimit): string {
  if (limit !== rule.limit) return itemOf(rule, limit)
  let item = policyItems.get(rule)
  if (item === undefined) {
    item = itemOf(rule, limit)
    policyItems.set(rule, item)
  }
  return item
}

/** Formats a policy item. `limit` is the limit in force, which may be an operator's override. */
function itemOf({ name, windowSeconds, meter }: LimitRule, limit: number): string {
  return `"${name}";q=${limit};${meter?.scale ?? `w=${windowSeconds}`}`
}

/**
 * Sets `RateLimit-Policy` with every consulted limit, and `RateLimit` with one of them: the limit
 * that refused the request, else the one with the fewest requests left (of equals the one that
 * resets last). All other metered limits follow it: otherwise a caller does not see its quota. Sets
 * nothing if no limit was consulted. Leaves out limits in observe mode, because
 * a caller who obeyed them would hide what the operator wants to observe.
 *
 * The seconds of a denial by a limit become `t`, so that `Retry-After` and `t` never contradict each
 * other.
 */
export function setRateLimitHeaders(
  headers: { set(name: string, value: string): unknown },
  limits: readonly RateLimit[],
  nowMs: number,
  denial?: Denial,
): void {
  const reported = limits.some(isObserved) ? limits.filter((limit) => !isObserved(limit)) : limits
  const refusal = denial?.code === 'rate_limited' ? denial : undefined
  const refusing = refusal && reported.find(({ rule }) => rule.name === refusal.limit)
  const named = refusing ?? findTightest(reported)
  if (named === undefined) return
  const others = reported.filter((limit) => limit !== named && limit.rule.meter !== undefined)
  headers.set('RateLimit-Policy', reported.map(policyItem).join(', '))
  headers.set('RateLimit', [named, ...others].map(stateItem).join(', '))

  function stateItem({ rule, remaining, resetMs }: RateLimit): string {
    // Rounded up, so that no caller retries too early.
    const resetSeconds = Math.max(0, Math.ceil((resetMs - nowMs) / 1000))
    const seconds = rule === refusing?.rule ? refusal?.retryAfterSeconds : resetSeconds
    return `"${rule.name}";r=${remaining};t=${seconds}`
  }
}

const isObserved = ({ rule }: RateLimit): boolean => rule.mode === 'observe'

function findTightest(limits: readonly RateLimit[]): RateLimit | undefined {
  let tightest: RateLimit | undefined
  for (const limit of limits) {
    if (tightest === undefined || isTighter(limit, tightest)) tightest = limit
  }
  return tightest
}

function isTighter(limit: RateLimit, other: RateLimit): boolean {
  const difference = requestsLeft(limit) - requestsLeft(other)
  return difference < 0 || (difference === 0 && limit.resetMs > other.resetMs)
}

/** Units of limits with different costs are not comparable. */
const requestsLeft = ({ rule, remaining }: RateLimit): number =>
  Math.floor(remaining / (rule.cost ?? 1))
