/** The part of a policy that says who decides over relations, and which a route demands. */
import type { Mode } from '../validators/mode.ts'

/** Who decides: the gateway's own tuples, or somebody else (docs/decisions/0045). */
export type RelationAuthorityKind = 'redis' | 'openfga' | 'authzen'

/** Relations between callers and objects. */
export interface RelationsDefinition {
  /** An authorization model as OpenFGA's API takes it: what `npm run model` makes of an `.fga`. */
  readonly model: unknown
  /**
   * How callers are called in tuples, `type:` and at least one of `{subject}`, `{client}`, `{tenant}`
   * and `{issuer}`. Default `user:{subject}`.
   */
  readonly subject?: string
  /**
   * Issuers whose subjects and tenants are all of one namespace, besides the gateway itself, whose
   * operators choose them; callers of others have no relation to anything. Default: every trusted one
   * where there is one, or where `subject` names the `{issuer}`; else it must be given.
   */
  readonly issuers?: readonly string[]
  /**
   * How old a decision may be that an isolate uses again, in milliseconds, 0 to 60,000. Default 0: each
   * is made anew.
   */
  readonly maxStalenessMs?: number
  /** Decisions that an isolate keeps, 1 to 1,000,000. Default 10,000. */
  readonly cacheEntries?: number
  /** Who decides. Default `redis`. */
  readonly authority?: RelationAuthorityKind
}

/** A tuple that is taken to be there for a request; each part but the relation is a template. */
export interface ContextualTupleDefinition {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** The relation that the caller of a route must have. */
export interface RelationDemand {
  /** Template: `order:{params.id}`. */
  readonly object: string
  /** Name of a relation that the object's type has in the model. */
  readonly relation: string
  /** At most 20. Default none. */
  readonly contextualTuples?: readonly ContextualTupleDefinition[]
  /** `observe`: callers without it pass, and audit events tell who. Default `enforce`. */
  readonly mode?: Mode
}
