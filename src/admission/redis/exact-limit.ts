/** Arguments and reply of one exact window in a script call. */

import { Unavailable } from '../../errors.ts'
import type { LeaseRequest } from '../lease.ts'
import type { LimitRule, RateLimit } from '../limit.ts'
import { passesUncounted } from '../verdict.ts'

/** Returns whether a limit uses an exact window, not that of `@upstash/ratelimit`. */
export const isExact = ({ engine }: LimitRule): boolean => typeof engine !== 'object'

/**
 * Values in the reply for one limit: the limit in force, the units left, and milliseconds until
 * more are free.
 */
export const STATE_VALUES = 3

/** Refuses if the window has no room. */
const IF_SPENT = 1
/** Refuses if the window cannot be read. */
const IF_UNKNOWN = 2
/** In the reply in place of the limit in force: the window failed. */
const FAILED = -1

/**
 * Appends the arguments of a limit: units, seconds, cost, and when it refuses. With `isRenewal`,
 * the cost is 0 and the limit refuses nothing.
 */
export function pushExactArguments(
  args: (string | number)[],
  rule: LimitRule,
  isRenewal = false,
): void {
  if (isRenewal) {
    args.push(rule.limit, rule.windowSeconds, 0, 0)
    return
  }
  const force =
    (rule.mode === 'observe' ? 0 : IF_SPENT) + (passesUncounted({ rule }) ? 0 : IF_UNKNOWN)
  args.push(rule.limit, rule.windowSeconds, rule.cost ?? 1, force)
}

/**
 * Parses the {@link STATE_VALUES} of a limit. Throws `Unavailable` if the script cannot have
 * returned them.
 */
export function exactStateOf(
  rule: LimitRule,
  [limit, left, waitMs]: readonly unknown[],
  nowMs: number,
): RateLimit | Unavailable {
  if (limit === FAILED) return new Unavailable('redis', 'refused')
  if (!isWhole(limit) || !isWhole(left) || !isWhole(waitMs))
    throw new Unavailable('redis', 'malformed')
  const admitted = left >= 0
  const remaining = admitted ? left : -1 - left
  if (limit < 0 || remaining > limit || waitMs < 0) throw new Unavailable('redis', 'malformed')
  return { rule, limit, remaining, resetMs: nowMs + waitMs, admitted }
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value)

/** Formats the request of `lease.lua`: an empty text, or five whole numbers. */
export function leaseArgument(request: LeaseRequest | undefined): string {
  if (request === undefined) return ''
  const { units, step, holdMs, returned, returnedEndMicros } = request
  return `${units} ${step} ${holdMs * 1000} ${returned} ${returnedEndMicros}`
}

/**
 * Values in the reply for a limit with a lease request: the granted units, and the end of their
 * hold.
 */
export const LEASE_VALUES = 2
