/** How a relation was proved or refuted, for operators: as JSON. */
import type {
  RelationAnswer,
  RelationAuthority,
  RelationDecision,
  RelationQuery,
  Undecided,
} from './authority.ts'

/**
 * What a step looked at: a `relation` of an object as a whole, or a part of its definition. `direct`
 * are the subject and its wildcard, `userset` the usersets that tuples name.
 */
export type TracedRule =
  | 'relation'
  | 'direct'
  | 'userset'
  | 'computed'
  | 'tuple_to_userset'
  | 'union'
  | 'intersection'
  | 'exclusion'

/**
 * Why a step has none below it though it could: the node is the subject itself; the model lets no
 * subject of this type have the relation; it is being looked at already, further up; it was before.
 * Or (`by_subject`) it was found from the other end: which of the groups that the subject is in, by
 * itself or by way of others, do tuples name? Only those that prove it are told.
 */
export type TraceNote = 'self' | 'not_in_model' | 'cycle' | 'seen' | 'by_subject'

export interface RelationStep {
  readonly rule: TracedRule
  /** `type:id#relation`. */
  readonly node: string
  /** The tuple that led here, or of `direct` the one that was found: `object#relation@subject`. */
  readonly tuple?: string
  readonly note?: TraceNote
  readonly outcome: RelationDecision['outcome']
  /** Of an outcome `unknown`. */
  readonly why?: Undecided
  /**
   * What it was made of, in the order in which it was looked at. Looking ends with the first step
   * that decides. Of an allowed relation, the allowed steps from the top down are the proof.
   */
  readonly steps: readonly RelationStep[]
}

export interface RelationTrace {
  readonly root: RelationStep
  /** There were more steps than are told, {@link MAX_TRACE_STEPS}. */
  readonly truncated: boolean
  /** Calls within Redis and members of sets that were looked at. */
  readonly work: number
}

/** More steps than this are not told. */
export const MAX_TRACE_STEPS = 500

export interface ExplainedAnswer extends RelationAnswer {
  readonly trace: RelationTrace
}

/** Port: an authority that can tell how it decides. */
export interface ExplainingAuthority extends RelationAuthority {
  /** Decides as `check` does, and throws as it does. */
  explain(query: RelationQuery): Promise<ExplainedAnswer>
}
