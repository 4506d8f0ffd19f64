/** The public surface of Portcullis: relations between callers and objects. */

export type { RelationOptions } from '../middleware/relation.ts'
export type { PolicyRelations } from '../policy-relations.ts'
export type {
  RelationAnswer,
  RelationAuthority,
  RelationDecision,
  RelationQuery,
  Undecided,
} from '../relations/authority.ts'
export {
  createRelationCache,
  type RelationCache,
  type RelationCacheOptions,
} from '../relations/cache.ts'
export {
  createRelationChecker,
  type RelationChecker,
  type RelationCheckerOptions,
  type RelationRequest,
  type RelationVerdict,
} from '../relations/checker.ts'
export { compileModel } from '../relations/compile-model.ts'
export { decodeConsistency, encodeConsistency } from '../relations/consistency.ts'
export type {
  ContextualTupleDefinition,
  RelationAuthorityKind,
  RelationDemand,
  RelationsDefinition,
} from '../relations/definition.ts'
export { ModelInvalid, type RelationModel } from '../relations/model.ts'
export {
  createRelationRule,
  type RelationRule,
  type RelationRuleOptions,
} from '../relations/rule.ts'
export type { RelationTuples } from '../relations/store.ts'
export { escapeId, formatTuple, parseTuple, type RelationTuple } from '../relations/tuple.ts'
export { createAuthzenAuthority } from '../stores/authorities/authzen.ts'
export { createOpenfgaAuthority } from '../stores/authorities/openfga.ts'
export {
  createRelationCheck,
  createUpstashRelationAuthority,
  type RelationCheck,
  type RelationLimits,
} from '../stores/upstash/relation-check.ts'
export { createRelationTuples } from '../stores/upstash/relation-tuples.ts'
