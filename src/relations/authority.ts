/** Who decides over relations, and what is asked and answered. */
import type { RelationTuple } from './tuple.ts'

/** Has `subject` the `relation` to `object`? Each in its written form: `user:anne`, `order:7`. */
export interface RelationQuery {
  /** Whose tuples count; null: those of nobody's tenant. Never those of another. */
  readonly tenant: string | null
  readonly object: string
  readonly relation: string
  readonly subject: string
  /** Taken to be there for this query alone. */
  readonly contextualTuples: readonly RelationTuple[]
  /**
   * The decision must know every write up to this version of the tenant's tuples (microseconds since
   * the epoch). Default 0: what is known to whoever decides.
   */
  readonly atLeast?: number | undefined
}

/** Why nobody can tell, though everything answered. */
export type Undecided =
  /** The tuples lead on farther than may be followed. */
  | 'max_depth_exceeded'
  /** So many tuples lead on that looking at them would take too long. */
  | 'max_work_exceeded'
  /** It holds only if it does not: an exclusion that leads back to itself. */
  | 'negated_cycle'

/** `unknown` is never allowed. */
export type RelationDecision =
  | { readonly outcome: 'allowed' }
  | { readonly outcome: 'denied' }
  | { readonly outcome: 'unknown'; readonly why: Undecided }

/** What an authority says. */
export interface RelationAnswer {
  readonly decision: RelationDecision
  /**
   * Version of the tenant's tuples by which it was decided: microseconds since the epoch, never
   * smaller than before. 0: none was ever written, or the authority has no versions.
   */
  readonly version: number
}

/**
 * Port. Throws `Unavailable` whenever it cannot tell, and where it knows less than `atLeast`; an absent
 * or odd reply is never a decision.
 */
export interface RelationAuthority {
  check(query: RelationQuery): Promise<RelationAnswer>
}
