/** The rule of automatic bans for one offender (decision 0021): from refusals to bans. */
import fc from 'fast-check'
import type { BanDefinition } from '../../../src/access/abuse/definition.ts'
import type { Violation } from '../../../src/access/abuse/violations.ts'

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

/**
 * Returns the bans that a list of refusals causes. Isolates play no part in the rule. A ban longer
 * ago than `maxSeconds` after its end lengthens no other, if `isForgotten`: keys in
 * Redis expire by the clock of Redis, not of a test.
 */
export function bansOf(
  refusals: readonly Refusal[],
  rule: Required<BanDefinition>,
  { isForgotten = false } = {},
): readonly EarnedBan[] {
  const bans: EarnedBan[] = []
  let earlier = 0
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
    const lastEndMs = (bans.at(-1)?.endsAtSeconds ?? 0) * 1000
    if (isForgotten && atMs >= lastEndMs + rule.maxSeconds * 1000) earlier = 0
    const seconds = Math.min(rule.seconds * 2 ** earlier, rule.maxSeconds)
    earlier += 1
    bans.push({ atMs, endsAtSeconds: Math.floor(atMs / 1000) + seconds })
    violations = []
    limitViolationAtMs = Number.NEGATIVE_INFINITY
  }
  return bans
}

/** A refusal, its distance from the previous one, and its isolate. */
export const step = fc.record({
  gapMs: fc.constantFrom(0, 0, 0, 1, 250, 1_300, 4_999, 5_000, 5_001, 20_000, 61_000, 4_000_000),
  of: fc.constantFrom('limit', 'limit', 'limit', 'credential', 'inspection'),
  at: fc.nat(1_000),
})

export const rules = fc
  .record({
    violations: fc.integer({ min: 1, max: 6 }),
    windowSeconds: fc.constantFrom(60, 600),
    seconds: fc.constantFrom(600, 3_600),
    maxSeconds: fc.constant(7_200),
  })
  .map((rule): Required<BanDefinition> => ({ ...rule, mode: 'enforce', refuses: 'everything' }))
