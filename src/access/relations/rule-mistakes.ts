/** Finds the mistakes in relation rules when the gateway reads a policy. */
import type { Mistake } from '../../problems/mistake.ts'
import type { ContextualTupleDefinition, RelationDemand } from './definition.ts'
import { kindOf, type RelationModel } from './model.ts'
import { canReach, computeReach } from './reach.ts'
import { parseTemplate, type Template } from './template.ts'

export interface RuleContext {
  readonly model: RelationModel
  /** Template for the name of a caller in tuples. */
  readonly subject: string
  /** Parameters of the path; undefined if the path is not available. */
  readonly params?: readonly string[]
}

/** Yields the mistakes of a rule. Each message names the part of the rule that is wrong. */
export function* mistakesInRule(
  { object: objectText, relation, contextualTuples = [] }: RelationDemand,
  { model, subject, params }: RuleContext,
): Generator<Mistake> {
  const object = parseTemplate(objectText)
  const caller = parseTemplate(subject)
  yield* mistakesInObject(object, params)
  if (typeof object === 'object') {
    const at = `${object.type}#${relation}`
    const why = whyUndefined(model, object.type, relation)
    if (why !== undefined) yield why
    else if (typeof caller === 'object' && !canReach(computeReach(model), at, caller.type))
      yield inPart('relation', `no ${caller.type} can ever have ${at}`)
  }
  for (const [index, tuple] of contextualTuples.entries())
    for (const mistake of mistakesInTuple(tuple, model, params))
      yield {
        ...mistake,
        path: ['contextualTuples', index, ...mistake.path],
        message: `contextualTuples[${index}] ${mistake.message}`,
      }
}

/** Yields the mistakes in the template for callers alone. */
export function* mistakesInSubject(text: string, model: RelationModel): Generator<Mistake> {
  const subject = parseTemplate(text)
  if (typeof subject === 'string') {
    yield inPart(undefined, subject)
    return
  }
  if (!model.types.has(subject.type)) yield noType(model, subject.type, [])
  if (subject.kind !== subject.type)
    yield inPart(undefined, 'must be one subject, not a userset or a wildcard')
  else if (subject.placeholders.length === 0)
    yield inPart(undefined, 'must contain a placeholder: it is the same for every caller')
  if (subject.placeholders.some(({ kind }) => kind === 'param'))
    yield inPart(undefined, 'must not depend on the path: the caller would choose its own subject')
}

type Params = RuleContext['params']

function* mistakesInObject(object: Template | string, params: Params): Generator<Mistake> {
  if (typeof object === 'object' && object.kind !== object.type)
    yield inPart('object', 'object must be one object, not a userset or a wildcard')
  yield* mistakesInTemplate('object', object, params)
}

function* mistakesInTemplate(
  part: 'object' | 'subject',
  template: Template | string,
  params: Params,
): Generator<Mistake> {
  if (typeof template === 'string') {
    yield inPart(part, `${part} ${template}`)
    return
  }
  for (const placeholder of template.placeholders)
    if (placeholder.kind === 'param' && params?.includes(placeholder.name) === false)
      yield {
        code: 'unknown_parameter',
        path: [part],
        message: `${part} names {params.${placeholder.name}}, which is not in the path`,
        given: placeholder.name,
        known: params,
      }
}

function* mistakesInTuple(
  tuple: ContextualTupleDefinition,
  model: RelationModel,
  params: Params,
): Generator<Mistake> {
  const object = parseTemplate(tuple.object)
  const subject = parseTemplate(tuple.subject)
  yield* mistakesInObject(object, params)
  yield* mistakesInTemplate('subject', subject, params)
  if (typeof object === 'string' || typeof subject === 'string') return
  const why = whyUndefined(model, object.type, tuple.relation)
  const { directTypes = [] } = model.types.get(object.type)?.get(tuple.relation) ?? {}
  if (why !== undefined) yield why
  else if (!directTypes.some((direct) => kindOf(direct) === subject.kind))
    yield inPart(
      'subject',
      `the model permits no ${tuple.subject} as ${object.type}#${tuple.relation}`,
    )
}

function whyUndefined(model: RelationModel, type: string, relation: string): Mistake | undefined {
  const relations = model.types.get(type)
  if (relations === undefined) return noType(model, type, ['object'])
  if (relations.has(relation)) return undefined
  const known = [...relations.keys()]
  const message = `the model has no relation ${type}#${relation}; it has ${known.join(', ')}`
  return { code: 'unknown_relation', path: ['relation'], message, given: relation, known }
}

function noType({ types }: RelationModel, given: string, path: Mistake['path']): Mistake {
  const known = [...types.keys()]
  const message = `the model has no type ${given}; it has ${known.join(', ')}`
  return { code: 'unknown_type', path, message, given, known }
}

/** Creates a mistake in a part of a rule, or in the whole. */
const inPart = (part: string | undefined, message: string): Mistake => ({
  code: 'invalid_relation',
  path: part === undefined ? [] : [part],
  message,
})
