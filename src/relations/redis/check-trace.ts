/** Reads the outcome and the trace that the script of a check returns. */
import { Unavailable } from '../../errors.ts'
import type { RelationDecision } from '../decision-point.ts'
import { type RelationStep, type RelationTrace, TRACE_NOTES, TRACED_RULES } from '../trace.ts'

/** The outcomes of the script, by their numbers in `walk.lua`. */
const DECISIONS: readonly RelationDecision[] = [
  { outcome: 'denied' },
  { outcome: 'allowed' },
  { outcome: 'unknown', why: 'negated_cycle' },
  { outcome: 'unknown', why: 'max_depth_exceeded' },
  { outcome: 'unknown', why: 'max_work_exceeded' },
]

/** Returns the decision for an outcome of the script. Throws `Unavailable` for any other value. */
export function decisionOf(outcome: unknown): RelationDecision {
  const decision = typeof outcome === 'number' ? DECISIONS[outcome] : undefined
  if (decision === undefined) throw malformed()
  return decision
}

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
  const knownRule = TRACED_RULES.find((each) => each === rule)
  const knownNote = TRACE_NOTES.find((each) => each === note)
  if (knownRule === undefined || typeof node !== 'string' || typeof tuple !== 'string')
    throw malformed()
  return {
    rule: knownRule,
    node,
    ...(tuple !== '' && { tuple }),
    ...(knownNote !== undefined && { note: knownNote }),
    ...decisionOf(outcome),
    steps: [],
  }
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw malformed()
}

export const malformed = () => new Unavailable('redis', 'malformed')
