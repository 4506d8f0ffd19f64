/** The relations of a checked policy. `portcullis/relations` contains the code behind them. */
import type { ExternalDecisionPoint, RelationDemand } from '../access/relations/definition.ts'
import type { RelationModel } from '../access/relations/model.ts'
import type { RelationRule } from '../access/relations/rule.ts'
import type { Mistake } from '../problems/mistake.ts'
import type { Feature, ListedFeature } from '../validators/feature.ts'

export interface RelationsFeature extends Feature<'relations'> {
  /** Compiles the model and fills in the defaults. Throws `Misconfigured`. */
  compile(): PolicyRelations
}

/** Checked relations, with defaults filled in. */
export interface PolicyRelations {
  readonly by: ListedFeature
  readonly model: RelationModel
  /** Template of the caller's name in tuples. */
  readonly subject: string
  readonly issuers: readonly string[] | undefined
  readonly maxStalenessMs: number
  readonly cacheEntries: number
  readonly authority: 'redis' | ExternalDecisionPoint
  /** Yields the mistakes in the demand of a route with these path parameters. */
  mistakesIn(demand: RelationDemand, params: readonly string[]): Iterable<Mistake>
  /** Creates the rule of a demand that has no mistakes. */
  ruleOf(demand: RelationDemand): RelationRule
}
