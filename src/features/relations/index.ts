/** Relations between callers and objects: `import { relations } from 'portcullis/relations'`. */

import { createRelationCache } from '../../access/relations/cache.ts'
import { createRelationChecker } from '../../access/relations/checker.ts'
import { compileModel } from '../../access/relations/compile-model.ts'
import type { RelationsDefinition } from '../../access/relations/definition.ts'
import { ModelInvalid, type RelationModel } from '../../access/relations/model.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
} from '../../access/relations/redis/check.ts'
import { createRelationTuples } from '../../access/relations/redis/tuples.ts'
import { createRule, DEFAULT_SUBJECT } from '../../access/relations/rule.ts'
import { mistakesInRule, mistakesInSubject } from '../../access/relations/rule-mistakes.ts'
import { parseTemplate } from '../../access/relations/template.ts'
import { Misconfigured } from '../../errors.ts'
import type { Feature, RelationParts, RelationServices } from '../../gateway/feature.ts'
import type { PolicyRelations, RelationsFeature } from '../../policy/relations.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import type { Config } from '../../validators/environment.ts'
import { type AdminRelations, relationCalls } from './calls.ts'
import { relationsSchema } from './schema.ts'

/** About 4 MB, at about 400 bytes an entry. */
const DEFAULT_RELATION_CACHE_ENTRIES = 10_000

/**
 * Returns the relations of a policy, for its field `relations`.
 *
 * @example
 * ```ts
 * relations: relations({ model, issuers: ['https://idp.example.com'] })
 * ```
 */
export function relations(definition: RelationsDefinition): RelationsFeature {
  return { feature: 'relations', compile: () => compiled(definition) }
}

function compiled(definition: RelationsDefinition): PolicyRelations {
  parseConfiguration('The policy', relationsSchema, definition, ['relations'])
  const { subject = DEFAULT_SUBJECT, authority = 'redis' } = definition
  const model = modelOf(definition)
  refuse('subject', [...mistakesInSubject(subject, model)])
  const feature: Feature = {
    name: 'relations',
    variables: authority === 'redis' ? undefined : authority.variables,
    relations: (config, parts) => relationServices(relations, config, parts),
  }
  const relations: PolicyRelations = {
    by: feature,
    model,
    subject,
    issuers: definition.issuers,
    maxStalenessMs: definition.maxStalenessMs ?? 0,
    cacheEntries: definition.cacheEntries ?? DEFAULT_RELATION_CACHE_ENTRIES,
    authority,
    mistakesIn: (demand, params) => mistakesInRule(demand, { model, subject, params }),
    ruleOf: (demand) => createRule(demand, subject),
  }
  return relations
}

function modelOf({ model }: RelationsDefinition): RelationModel {
  try {
    return compileModel(model)
  } catch (error) {
    if (error instanceof ModelInvalid)
      refuse(
        'model',
        error.mistakes.map((message) => ({ code: 'invalid_model', path: [], message })),
      )
    throw error
  }
}

function refuse(field: string, mistakes: readonly Mistake[]): void {
  if (mistakes.length === 0) return
  throw new Misconfigured(
    'The policy',
    mistakes.map((mistake) => ({ ...mistake, path: ['relations', field] })),
  )
}

function relationServices(
  relations: PolicyRelations,
  config: Config,
  { redis, watch, tally, now }: RelationParts,
): RelationServices {
  const { model, maxStalenessMs, cacheEntries: maxEntries } = relations
  const { check, decisionPoint } = createDecisionPoint(relations, config, { redis, watch, now })
  const checker = createRelationChecker({
    decisionPoint,
    // The cache allocates its memory when it is created.
    cache:
      maxStalenessMs > 0 ? createRelationCache({ maxStalenessMs, maxEntries, tally }) : undefined,
    issuers: listIssuers(relations, config),
    isIncludedInAdmission: check !== undefined,
    now,
  })
  const tuples = check && createRelationTuples(redis, model.types.keys())
  return { check, checker, calls: relationCalls({ model, tuples, decisionPoint }) }
}

function createDecisionPoint(
  { model, authority }: PolicyRelations,
  config: Config,
  { redis, watch, now }: Omit<RelationParts, 'tally'>,
): Pick<AdminRelations, 'decisionPoint'> & Pick<RelationServices, 'check'> {
  if (authority !== 'redis')
    return { check: undefined, decisionPoint: authority.create(config, { watch, now }) }
  const check = createRelationCheck(model)
  return { check, decisionPoint: createRedisDecisionPoint(redis, check) }
}

/**
 * Returns the issuers of callers that can have relations. Two issuers may use the same subject and
 * the same tenant name, so the policy must name the issuers that share a namespace. The gateway's
 * own issuer is always included.
 */
function listIssuers({ issuers, subject }: PolicyRelations, config: Config): ReadonlySet<string> {
  const { publicUrl } = config
  if (issuers !== undefined) return new Set([publicUrl, ...issuers])
  const template = parseTemplate(subject)
  const namesIssuer =
    typeof template === 'object' && template.placeholders.some(({ kind }) => kind === 'issuer')
  const others = config.issuers.flatMap(({ issuer }) => (issuer === publicUrl ? [] : [issuer]))
  if (namesIssuer || others.length <= 1) return new Set([publicUrl, ...others])
  throw new Misconfigured('The policy', [
    mistakeAt(
      'missing',
      ['relations', 'issuers'],
      `${others.join(' and ')} are trusted; name those whose subjects and tenants ` +
        'are of one namespace, or put {issuer} into relations.subject',
    ),
  ])
}
