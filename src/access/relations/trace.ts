/** Traces of relation checks for operators: how a relation was proved or refuted, as JSON. */
import type {
  PolicyDecisionPoint,
  RelationAnswer,
  RelationDecision,
  RelationQuery,
} from './decision-point.ts'

/**
 * What a step evaluated: a whole `relation` of an object, or a part of its definition. `direct`: the
 * subject and its wildcard. `userset`: the usersets that tuples name.
 */
export const TRACED_RULES = [
  'relation',
  'direct',
  'userset',
  'computed',
  'tuple_to_userset',
  'union',
  'intersection',
  'exclusion',
] as const

/**
 * Why a step has no child steps although it could have some.
 *
 * - `self`: the node is the subject itself.
 * - `not_in_model`: the model gives the relation to no subject of this type.
 * - `cycle`: a parent step is already evaluating the node.
 * - `seen`: the check evaluated the node before.
 * - `by_subject`: the check found the memberships of the subject, direct and indirect, and looked
 *   for them in the tuples. The trace contains only memberships that prove the relation.
 */
export const TRACE_NOTES = ['self', 'not_in_model', 'cycle', 'seen', 'by_subject'] as const

export type RelationStep = RelationDecision & {
  readonly rule: (typeof TRACED_RULES)[number]
  /** The `type:id#relation` that was evaluated. */
  readonly node: string
  /** The tuple that led to this step; for `direct` the tuple that was found. */
  readonly tuple?: string
  readonly note?: (typeof TRACE_NOTES)[number]
  /**
   * In the order of evaluation, which ends with the first step that decides. The allowed steps from
   * the root down are the proof of an allowed relation.
   */
  readonly steps: readonly RelationStep[]
}

export interface RelationTrace {
  readonly root: RelationStep
  /** Whether steps beyond {@link MAX_TRACE_STEPS} were omitted. */
  readonly truncated: boolean
  /** Number of calls inside Redis plus set members that were read. */
  readonly work: number
}

export const MAX_TRACE_STEPS = 500

export interface ExplainedAnswer extends RelationAnswer {
  readonly trace: RelationTrace
}

export interface ExplainingDecisionPoint extends PolicyDecisionPoint {
  /** Decides as `check` does, and throws the same errors. */
  explain(query: RelationQuery): Promise<ExplainedAnswer>
}
