/** The relation that a route demands of its callers, ready to be asked for. */
import type { Principal } from '../tokens/principal.ts'
import type { Mode } from '../validators/mode.ts'
import type { RelationQuery } from './authority.ts'
import type { RelationDemand } from './definition.ts'
import type { RelationModel } from './model.ts'
import { mistakesInRule } from './rule-mistakes.ts'
import { parseTemplate, type Template, type ValueOf } from './template.ts'
import { formatTuple, type RelationTuple } from './tuple.ts'

/** How callers are called in tuples, but for what a policy says. */
export const DEFAULT_SUBJECT = 'user:{subject}'

/** What one route demands. Pure: it asks nobody. */
export interface RelationRule {
  /** For audit events: `order#viewer`. */
  readonly name: string
  readonly mode: Mode
  /**
   * What is to be asked of a request; `paramOf` reads a parameter of its path. Undefined where a value
   * is missing or can be no id: then there is nothing to ask, and nothing is allowed.
   */
  queryOf(
    principal: Principal,
    paramOf: (name: string) => string | undefined,
  ): RelationQuery | undefined
}

export interface RelationRuleOptions extends RelationDemand {
  /** From `compileModel`. */
  readonly model: RelationModel
  /** As in `RelationsDefinition`. Default `user:{subject}`. */
  readonly subject?: string
}

/**
 * Makes a rule. Throws `TypeError` with every mistake in it, but for parameters that a path has not. The
 * tenant of what it asks is the principal's, always.
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

/** The same of a demand in which no mistakes are. Throws `TypeError` for templates that are none. */
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
 * A text that queries share which ask the same of the same tuples, and no others: objects, relations
 * and subjects have no white space in them, and the tenant comes last.
 */
export function queryKey(query: RelationQuery): string {
  const { tenant, contextualTuples } = query
  const asked = [query, ...contextualTuples].map(formatTuple).join(' ')
  return tenant === null ? asked : `${asked}\n${tenant}`
}
