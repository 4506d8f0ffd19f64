import type { RelationTuple } from './tuple.ts'

/** A query: does `subject` (`user:anne`) have `relation` to `object` (`order:7`)? */
export interface RelationQuery {
  /** Only tuples of this tenant are read. null: those of callers without a tenant. */
  readonly tenant: string | null
  readonly object: string
  readonly relation: string
  readonly subject: string
  /** Tuples that count as present for this query only. */
  readonly contextualTuples: readonly RelationTuple[]
  /**
   * The decision must include every write up to this version of the tenant's tuples, in
   * microseconds since the epoch. Default 0: any version.
   */
  readonly atLeast?: number | undefined
}

/** Why no decision is possible although every call succeeded. */
export type Undecided =
  /** The chain of tuples is longer than the depth limit. */
  | 'max_depth_exceeded'
  /** The check would exceed the work limit. */
  | 'max_work_exceeded'
  /** The relation depends on its own negation: an exclusion leads back to itself. */
  | 'negated_cycle'

/** `unknown` never allows a request. */
export type RelationDecision =
  | { readonly outcome: 'allowed' }
  | { readonly outcome: 'denied' }
  | { readonly outcome: 'unknown'; readonly why: Undecided }

export interface RelationAnswer {
  readonly decision: RelationDecision
  /**
   * Version of the tenant's tuples that the decision used, in microseconds since the epoch. It never
   * decreases. 0: no tuple was ever written, or the policy decision point has no versions.
   */
  readonly version: number
}

/**
 * Port: a policy decision point for relations. Throws `Unavailable` when it cannot answer, and when
 * its data is older than `atLeast`. A missing or malformed reply is never a decision.
 */
export interface PolicyDecisionPoint {
  check(query: RelationQuery): Promise<RelationAnswer>
}
