/** Relation rules: build the query for the relation that a route demands. */
import type { Principal } from '../identity/principal.ts'
import type { Mode } from '../validators/mode.ts'
import type { RelationQuery } from './decision-point.ts'
import type { RelationDemand } from './definition.ts'
import type { RelationModel } from './model.ts'
import { mistakesInRule } from './rule-mistakes.ts'
import { parseTemplate, type Template, type ValueOf } from './template.ts'
import { formatTuple, type RelationTuple } from './tuple.ts'

/** How tuples name callers, unless the policy sets `relations.subject`. */
export const DEFAULT_SUBJECT = 'user:{subject}'

/** The relation that one route demands. Pure: it makes no calls. */
export interface RelationRule {
  /** The name in audit events: `order#viewer`. */
  readonly name: string
  readonly mode: Mode
  /**
   * Returns the query for a request; `paramOf` returns a path parameter. Returns undefined if a
   * value is missing or cannot be an id. The request is then denied without a query.
   */
  queryOf(
    principal: Principal,
    paramOf: (name: string) => string | undefined,
  ): RelationQuery | undefined
}

export interface RelationRuleOptions extends RelationDemand {
  /** The result of `compileModel`. */
  readonly model: RelationModel
  /** The same as `RelationsDefinition.subject`. Default `user:{subject}`. */
  readonly subject?: string
}

/**
 * Creates a rule. Throws `TypeError` with all mistakes in it. Does NOT check path parameters,
 * because the path is not available. The tenant of a query is always the tenant of the principal.
 *
 * @example
 * ```ts
 * const rule = createRelationRule({ model, object: 'note:{params.id}', relation: 'viewer' })
 * ```
 */
export function createRelationRule(options: RelationRuleOptions): RelationRule {
  const { model, subject = DEFAULT_SUBJECT, ...demand } = options
  const mistakes = [...mistakesInRule(demand, { model, subject })]
  if (mistakes.length > 0) throw new TypeError(`createRelationRule: ${mistakes.join('; ')}`)
  return ruleOf(demand, subject)
}

/**
 * Creates a rule from a demand that has no mistakes. Throws `TypeError` for an invalid template.
 */
export function ruleOf(demand: RelationDemand, subjectTemplate: string): RelationRule {
  const { relation, mode = 'enforce' } = demand
  const object = templateOf(demand.object)
  const subject = templateOf(subjectTemplate)
  const contextual = (demand.contextualTuples ?? []).map((tuple) => ({
    object: templateOf(tuple.object),
    relation: tuple.relation,
    subject: templateOf(tuple.subject),
  }))
  return {
    name: `${object.type}#${relation}`,
    mode,
    queryOf(principal, paramOf) {
      const lookUp: ValueOf = (placeholder) =>
        placeholder.kind === 'param' ? paramOf(placeholder.name) : principal[placeholder.kind]
      const whom = subject.fill(lookUp)
      const what = object.fill(lookUp)
      if (whom === undefined || what === undefined) return undefined
      const tuples: RelationTuple[] = []
      for (const template of contextual) {
        const tuple = {
          object: template.object.fill(lookUp),
          relation: template.relation,
          subject: template.subject.fill(lookUp),
        }
        if (!isFilled(tuple)) return undefined
        tuples.push(tuple)
      }
      const tenant = principal.tenant ?? null
      return { tenant, object: what, relation, subject: whom, contextualTuples: tuples }
    },
  }
}

function templateOf(text: string): Template {
  const template = parseTemplate(text)
  if (typeof template === 'string') throw new TypeError(`${text}: ${template}`)
  return template
}

const isFilled = (
  tuple: {
    readonly [Part in keyof RelationTuple]: string | undefined
  },
): tuple is RelationTuple => tuple.object !== undefined && tuple.subject !== undefined

/**
 * Returns the cache key of a query. Two queries have the same key only if they check the same
 * relation over the same tuples. The key is unambiguous: objects, relations and subjects contain no
 * white space, and the tenant comes last.
 */
export function queryKey(query: RelationQuery): string {
  const { tenant, contextualTuples } = query
  const asked = [query, ...contextualTuples].map(formatTuple).join(' ')
  return tenant === null ? asked : `${asked}\n${tenant}`
}
