/** One exact window as a script is asked of it, and as the script answers. */
import type { LimitRule, RateLimit } from '../../admission/limit.ts'
import { passesUncounted } from '../../admission/verdict.ts'
import { Unavailable } from '../../errors.ts'

/** Whether a limit's window is exact, or `@upstash/ratelimit`'s. */
export const isExact = ({ engine }: LimitRule): boolean => engine !== 'upstash'

/** The limit in force, what is left, and milliseconds until there is more. */
export const EXACT_ANSWERS = 3

/** Refuses where there is no room. */
const IF_SPENT = 1
/** Refuses where nobody can tell. */
const IF_UNKNOWN = 2
/** In the place of the limit in force: it failed. */
const FAILED = -1

/** Adds units, seconds, cost, and when it refuses; of a limit without a request it costs nothing. */
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

/** Reads the {@link EXACT_ANSWERS} of a limit. Throws `Unavailable` for what no script says. */
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
