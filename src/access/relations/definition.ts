import type { Breakers } from '../../isolate/breakers.ts'
import type { Config, FeatureVariables } from '../../validators/environment.ts'
import type { Feature } from '../../validators/feature.ts'
import type { Mode } from '../../validators/mode.ts'
import type { PolicyDecisionPoint } from './decision-point.ts'

/**
 * An external policy decision point (docs/decisions/0045): `openfga()` from `portcullis/openfga`, or
 * `authzen()` from `portcullis/authzen`.
 */
export interface ExternalDecisionPoint extends Feature<'openfga' | 'authzen'> {
  readonly variables: FeatureVariables
  /**
   * Creates the policy decision point, with its deadline and its breakers. Equal checks at the same
   * time share one call. It does not cache decisions: the caller does. Throws `Misconfigured` if
   * the environment does not configure it.
   */
  create(config: Pick<Config, 'variables'>, options?: DecisionPointOptions): PolicyDecisionPoint
}

export interface DecisionPointOptions {
  /** From `createBreakers`. Default: breakers are not watched. */
  readonly watch?: Breakers['watch'] | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

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
  /** Maximum age of a cached decision in milliseconds, 0 to 60,000. Default 0: no cache. */
  readonly maxStalenessMs?: number
  /** Maximum number of decisions in the cache of an isolate, 1 to 1,000,000. Default 10,000. */
  readonly cacheEntries?: number
  /** The policy decision point: the gateway's own tuples in Redis, or a server. Default `redis`. */
  readonly authority?: 'redis' | ExternalDecisionPoint
}

/** A tuple that counts as present for one request. Each part except the relation is a template. */
export interface ContextualTupleDefinition {
  /** Template of the object: `order:{params.id}`. */
  readonly object: string
  /** Name of a relation of the object's type. */
  readonly relation: string
  /** Template of the subject that has the relation: `user:{subject}`. */
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
  /** `observe` admits callers without the relation, and audits them. Default `enforce`. */
  readonly mode?: Mode
}
