/** Builds the trace of a check from the steps that its script returns. */
import { Unavailable } from '../../errors.ts'
import type { RelationDecision } from '../decision-point.ts'
import type { RelationStep, RelationTrace, TracedRule, TraceNote } from '../trace.ts'

/** The outcomes that the script returns, as in `walk.lua`. */
const OUTCOMES = { denied: 0, allowed: 1, negatedCycle: 2, depth: 3, work: 4 } as const

/** The decision for each outcome of the script. */
export const DECISIONS: ReadonlyMap<unknown, RelationDecision> = new Map<unknown, RelationDecision>(
  [
    [OUTCOMES.denied, { outcome: 'denied' }],
    [OUTCOMES.allowed, { outcome: 'allowed' }],
    [OUTCOMES.negatedCycle, { outcome: 'unknown', why: 'negated_cycle' }],
    [OUTCOMES.depth, { outcome: 'unknown', why: 'max_depth_exceeded' }],
    [OUTCOMES.work, { outcome: 'unknown', why: 'max_work_exceeded' }],
  ],
)

const RULES: ReadonlySet<unknown> = new Set<TracedRule>([
  'relation',
  'direct',
  'userset',
  'computed',
  'tuple_to_userset',
  'union',
  'intersection',
  'exclusion',
])
const NOTES: ReadonlySet<unknown> = new Set<TraceNote>([
  'self',
  'not_in_model',
  'cycle',
  'seen',
  'by_subject',
])

type Growing = RelationStep & { readonly steps: RelationStep[] }

/** Builds the trace from the result of the script. Throws `Unavailable` for a malformed result. */
export function traceOf(result: unknown): RelationTrace {
  const [, , work, truncated, rows] = listOf(result)
  if (typeof work !== 'number') throw malformed()
  const steps: Growing[] = []
  for (const row of listOf(rows)) {
    const [parent, ...rest] = listOf(row)
    const step = stepOf(rest)
    const above = typeof parent === 'number' ? steps[parent - 1] : undefined
    // The first step has no parent. Each other step has a parent that precedes it.
    if (steps.length > 0 && above === undefined) throw malformed()
    above?.steps.push(step)
    steps.push(step)
  }
  const [root] = steps
  if (root === undefined) throw malformed()
  return { root, truncated: truncated === 1, work }
}

function stepOf([rule, node, tuple, note, outcome]: readonly unknown[]): Growing {
  const decision = DECISIONS.get(outcome)
  if (!isRule(rule) || typeof node !== 'string' || typeof tuple !== 'string') throw malformed()
  if (decision === undefined) throw malformed()
  return {
    rule,
    node,
    ...(tuple !== '' && { tuple }),
    ...(isNote(note) && { note }),
    ...decision,
    steps: [],
  }
}

const isRule = (value: unknown): value is TracedRule => RULES.has(value)
const isNote = (value: unknown): value is TraceNote => NOTES.has(value)

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw malformed()
}

const malformed = () => new Unavailable('redis', 'malformed')
