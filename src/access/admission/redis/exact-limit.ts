/** Arguments and reply of one exact window in a script call. */
import { Unavailable } from '../../../errors.ts'
import { malformed, readCount, readInteger } from '../../../redis/reply.ts'
import type { LimitRule, RateLimit } from '../limit.ts'
import { passesUncounted } from '../verdict.ts'

/** Reports whether a limit uses an exact window, not that of `@upstash/ratelimit`. */
export const isExact = ({ engine }: LimitRule): boolean => typeof engine !== 'object'

/** Values for one limit: the limit in force, units left, milliseconds until more are free. */
export const STATE_VALUES = 3

/** Refuses if the window has no room. */
const IF_SPENT = 1
/** Refuses if the window cannot be read. */
const IF_UNKNOWN = 2
/** In the reply in place of the limit in force: the window failed. */
const FAILED = -1

/**
 * Returns the arguments of a limit: units, seconds, cost, and when it refuses. With `isRenewal`,
 * the cost is 0 and the limit refuses nothing.
 */
export function exactArguments(rule: LimitRule, isRenewal = false): readonly number[] {
  const { limit, windowSeconds, cost = 1 } = rule
  if (isRenewal) return [limit, windowSeconds, 0, 0]
  const ifSpent = rule.mode === 'observe' ? 0 : IF_SPENT
  const ifUnknown = passesUncounted({ rule }) ? 0 : IF_UNKNOWN
  return [limit, windowSeconds, cost, ifSpent + ifUnknown]
}

/** Parses the {@link STATE_VALUES} of a limit. Throws `Unavailable` if they are malformed. */
export function readExactState(
  rule: LimitRule,
  [inForce, units, wait]: readonly unknown[],
  nowMs: number,
): RateLimit | Unavailable {
  if (inForce === FAILED) return new Unavailable('redis', 'refused')
  const limit = readCount(inForce)
  const left = readInteger(units)
  const admitted = left >= 0
  const remaining = admitted ? left : -1 - left
  if (remaining > limit) throw malformed()
  if (typeof wait !== 'string')
    return { rule, limit, remaining, resetMs: nowMs + readCount(wait), admitted }
  // Of a metered limit that refuses: the wait, and the plan of the caller.
  const at = wait.indexOf(' ')
  const resetMs = nowMs + readCount(Number(wait.slice(0, at)))
  return { rule, limit, remaining, resetMs, admitted, plan: wait.slice(at + 1) }
}
