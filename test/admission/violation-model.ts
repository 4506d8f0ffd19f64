/** The rule of automatic bans (docs/decisions/0021) for one offender: from refusals to bans. */
import type { BanDefinition } from '../../src/abuse/definition.ts'
import type { Violation } from '../../src/abuse/violations.ts'

/** One refusal that may count. */
export interface Refusal {
  /** Milliseconds since the epoch, never less than those of the refusal before. */
  readonly atMs: number
  readonly of: Violation['of']
}

export interface EarnedBan {
  readonly atMs: number
  /** The second since the epoch at which the ban ends. */
  readonly endsAtSeconds: number
}

/** A refusal by a limit is part of the violation that began less than so long before. */
const VIOLATION_MS = 5_000

/** Returns the bans that refusals bring. Isolates are not part of the rule. */
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
