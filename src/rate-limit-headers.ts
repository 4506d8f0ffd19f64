/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11). */
import type { LimitRule, RateLimit } from './admission/limit.ts'

/** The policy item of a rule never changes, so it is written once per isolate. */
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

/** `limit` is the one in force, which an operator may have set. */
function itemOf({ name, windowSeconds }: LimitRule, limit: number): string {
  return `"${name}";q=${limit};w=${windowSeconds}`
}

/** Whole seconds until `resetMs`, at least 0; rounded up, so that nobody comes too early. */
function secondsUntil(resetMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((resetMs - nowMs) / 1000))
}

/**
 * Tells the consulted limits: every policy, and as `RateLimit` the tightest of them (the fewest
 * requests left; of equals the one that resets last). Sets nothing where none was consulted, and
 * tells nothing of limits that are only observed: who obeyed them would hide what is to be seen.
 */
export function setRateLimitHeaders(
  headers: { set(name: string, value: string): unknown },
  limits: readonly RateLimit[],
  nowMs: number,
): void {
  const told = limits.some(isObserved) ? limits.filter((limit) => !isObserved(limit)) : limits
  const tightest = tightestOf(told)
  if (tightest === undefined) return
  headers.set('RateLimit-Policy', told.map(policyItem).join(', '))
  headers.set(
    'RateLimit',
    `"${tightest.rule.name}";r=${tightest.remaining};t=${secondsUntil(tightest.resetMs, nowMs)}`,
  )
}

const isObserved = ({ rule }: RateLimit): boolean => rule.mode === 'observe'

/** The limit that binds the caller first, or undefined where none was consulted. */
function tightestOf(limits: readonly RateLimit[]): RateLimit | undefined {
  let tightest: RateLimit | undefined
  for (const limit of limits) {
    if (
      tightest === undefined ||
      limit.remaining < tightest.remaining ||
      (limit.remaining === tightest.remaining && limit.resetMs > tightest.resetMs)
    ) {
      tightest = limit
    }
  }
  return tightest
}
