/**
 * The relation settings of a policy: the policy decision point, and the relations that routes
 * demand.
 */
import type { Mode } from '../validators/mode.ts'

/**
 * The policy decision point: the gateway's own tuples in Redis, or an external server
 * (docs/decisions/0045).
 */
export type PolicyDecisionPointKind = 'redis' | 'openfga' | 'authzen'

/** Settings for relations between callers and objects. */
export interface RelationsDefinition {
  /**
   * An authorization model in the JSON form of OpenFGA's API. `npm run model` creates it from an
   * `.fga` file.
   */
  readonly model: unknown
  /**
   * Template for the name of a caller in tuples: `type:` and at least one of `{subject}`,
   * `{client}`, `{tenant}` and `{issuer}`. Default `user:{subject}`.
   */
  readonly subject?: string
  /**
   * Issuers that share one namespace of subjects and tenants. The gateway itself is always
   * included, because operators choose its subjects. Callers of other issuers have no relations.
   * Default: all trusted issuers, if there is only one or if `subject` contains `{issuer}`;
   * otherwise this setting is required.
   */
  readonly issuers?: readonly string[]
  /**
   * Maximum age of a cached decision that an isolate uses, in milliseconds, 0 to 60,000. Default 0:
   * no cache.
   */
  readonly maxStalenessMs?: number
  /** Maximum number of decisions in the cache of an isolate, 1 to 1,000,000. Default 10,000. */
  readonly cacheEntries?: number
  /** The policy decision point. Default `redis`. */
  readonly authority?: PolicyDecisionPointKind
}

/** A tuple that counts as present for one request. Each part except the relation is a template. */
export interface ContextualTupleDefinition {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** The relation that the caller of a route must have. */
export interface RelationDemand {
  /** Template of the object: `order:{params.id}`. */
  readonly object: string
  /** Name of a relation that the model defines for the object's type. */
  readonly relation: string
  /** At most 20. Default none. */
  readonly contextualTuples?: readonly ContextualTupleDefinition[]
  /**
   * `observe` admits callers without the relation and records them in audit events. Default
   * `enforce`.
   */
  readonly mode?: Mode
}
