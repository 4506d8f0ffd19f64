/** The port for relation checks: the query, the decision and the answer. */
import type { RelationTuple } from './tuple.ts'

/**
 * A query: does `subject` have `relation` to `object`? Each part is in its written form:
 * `user:anne`, `order:7`.
 */
export interface RelationQuery {
  /**
   * The tenant that owns the tuples. null: the tuples of callers without a tenant. Tuples of other
   * tenants are never read.
   */
  readonly tenant: string | null
  readonly object: string
  readonly relation: string
  readonly subject: string
  /** Tuples that count as present for this query only. */
  readonly contextualTuples: readonly RelationTuple[]
  /**
   * The decision must include every write up to this version of the tenant's tuples (microseconds
   * since the epoch). Default 0: the decision may use any version that is available.
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

/** The result of a check. `unknown` never allows a request. */
export type RelationDecision =
  | { readonly outcome: 'allowed' }
  | { readonly outcome: 'denied' }
  | { readonly outcome: 'unknown'; readonly why: Undecided }

/** The answer of a policy decision point. */
export interface RelationAnswer {
  readonly decision: RelationDecision
  /**
   * Version of the tenant's tuples that the decision used: microseconds since the epoch, never
   * lower than in an earlier answer. It is 0 if no tuple was ever written, or if the policy
   * decision point has no versions.
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
