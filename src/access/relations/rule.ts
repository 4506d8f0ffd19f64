import type { Mode } from '../../validators/mode.ts'
import type { Principal } from '../principal.ts'
import type { RelationQuery } from './decision-point.ts'
import type { ContextualTupleDefinition, RelationDemand } from './definition.ts'
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
  if (mistakes.length > 0)
    throw new TypeError(`createRelationRule: ${mistakes.map(({ message }) => message).join('; ')}`)
  return createRule(demand, subject)
}

/** Creates a rule without checking it. Throws `TypeError` for an invalid template. */
export function createRule(
  { object, relation, contextualTuples = [], mode = 'enforce' }: RelationDemand,
  subject: string,
): RelationRule {
  const demanded = tupleTemplateOf({ object, relation, subject })
  const contextual = contextualTuples.map(tupleTemplateOf)
  return {
    name: `${demanded.object.type}#${relation}`,
    mode,
    queryOf(principal, paramOf) {
      const lookUp: ValueOf = (placeholder) =>
        placeholder.kind === 'param' ? paramOf(placeholder.name) : principal[placeholder.kind]
      const query = filledTuple(demanded, lookUp)
      if (query === undefined) return undefined
      const tuples: RelationTuple[] = []
      for (const template of contextual) {
        const tuple = filledTuple(template, lookUp)
        if (tuple === undefined) return undefined
        tuples.push(tuple)
      }
      return { tenant: principal.tenant ?? null, ...query, contextualTuples: tuples }
    },
  }
}

type TupleTemplate = ReturnType<typeof tupleTemplateOf>

function tupleTemplateOf(tuple: ContextualTupleDefinition) {
  const { object, relation, subject } = tuple
  return { object: templateOf(object), relation, subject: templateOf(subject) }
}

function templateOf(text: string): Template {
  const template = parseTemplate(text)
  if (typeof template === 'string') throw new TypeError(`${text}: ${template}`)
  return template
}

function filledTuple(template: TupleTemplate, lookUp: ValueOf): RelationTuple | undefined {
  const object = template.object.fill(lookUp)
  const subject = template.subject.fill(lookUp)
  if (object === undefined || subject === undefined) return undefined
  return { object, relation: template.relation, subject }
}

/**
 * Returns the cache key of a query. Two queries have the same key only if they check the same
 * relation over the same tuples. The key is unambiguous: objects, relations and subjects contain no
 * white space, and the tenant comes last.
 */
export function queryKey(query: RelationQuery): string {
  const { tenant, contextualTuples } = query
  const tuples = [query, ...contextualTuples].map(formatTuple).join(' ')
  return tenant === null ? tuples : `${tuples}\n${tenant}`
}
