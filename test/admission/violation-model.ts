/** The rule of automatic bans for one offender (decision 0021): from refusals to bans. */
import type { BanDefinition } from '../../src/abuse/definition.ts'
import type { Violation } from '../../src/abuse/violations.ts'

/** One refusal that may count. */
export interface Refusal {
  /** Milliseconds since the epoch, in ascending order. */
  readonly atMs: number
  readonly of: Violation['of']
}

export interface EarnedBan {
  readonly atMs: number
  /** The second since the epoch at which the ban ends. */
  readonly endsAtSeconds: number
}

/** A refusal by a limit belongs to the violation that began less than this time before. */
const VIOLATION_MS = 5_000

/** Returns the bans that a list of refusals causes. Isolates play no part in the rule. */
export function bansOf(
  refusals: readonly Refusal[],
  rule: Required<BanDefinition>,
): readonly EarnedBan[] {
  const bans: EarnedBan[] = []
  let violations: readonly number[] = []
  let limitViolationAtMs = Number.NEGATIVE_INFINITY
  for (const { atMs, of } of refusals) {
    if (atMs < (bans.at(-1)?.endsAtSeconds ?? 0) * 1000) continue
    if (of === 'limit') {
      if (atMs - limitViolationAtMs < VIOLATION_MS) continue
      limitViolationAtMs = atMs
    }
    const [firstMs = atMs] = violations
    violations = atMs - firstMs < rule.windowSeconds * 1000 ? [...violations, atMs] : [atMs]
    if (violations.length < rule.violations) continue
    const seconds = Math.min(rule.seconds * 2 ** bans.length, rule.maxSeconds)
    bans.push({ atMs, endsAtSeconds: Math.floor(atMs / 1000) + seconds })
    violations = []
    limitViolationAtMs = Number.NEGATIVE_INFINITY
  }
  return bans
}
