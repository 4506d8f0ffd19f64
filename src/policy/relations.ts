/** Compiles the relations of a policy and fills in their defaults. */
import { compileModel } from '../relations/compile-model.ts'
import type { PolicyDecisionPointKind, RelationsDefinition } from '../relations/definition.ts'
import { ModelInvalid, type RelationModel } from '../relations/model.ts'
import { DEFAULT_SUBJECT } from '../relations/rule.ts'
import { mistakesInSubject } from '../relations/rule-mistakes.ts'

/** A checked definition, with defaults filled in. */
export interface PolicyRelations {
  readonly model: RelationModel
  /** Template of the caller's name in tuples. */
  readonly subject: string
  /** Undefined: not specified. */
  readonly issuers: readonly string[] | undefined
  readonly maxStalenessMs: number
  readonly cacheEntries: number
  readonly authority: PolicyDecisionPointKind
}

/** About 4 MB, at about 400 bytes an entry. */
export const DEFAULT_RELATION_CACHE_ENTRIES = 10_000

/**
 * Compiles the model and fills in the defaults. Returns the mistakes if the model or the subject
 * template is invalid.
 */
export function policyRelationsOf(
  definition: RelationsDefinition | undefined,
): { readonly relations: PolicyRelations | undefined } | { readonly mistakes: readonly string[] } {
  if (definition === undefined) return { relations: undefined }
  const { subject = DEFAULT_SUBJECT } = definition
  let model: RelationModel
  try {
    model = compileModel(definition.model)
  } catch (error) {
    if (!(error instanceof ModelInvalid)) throw error
    return { mistakes: error.mistakes.map((mistake) => `relations.model: ${mistake}`) }
  }
  const mistakes = [...mistakesInSubject(subject, model)]
  if (mistakes.length > 0)
    return { mistakes: mistakes.map((mistake) => `relations.subject: ${mistake}`) }
  return {
    relations: {
      model,
      subject,
      issuers: definition.issuers,
      maxStalenessMs: definition.maxStalenessMs ?? 0,
      cacheEntries: definition.cacheEntries ?? DEFAULT_RELATION_CACHE_ENTRIES,
      authority: definition.authority ?? 'redis',
    },
  }
}
