import { kindOf, type RelationModel } from './model.ts'
import {
  parseObject,
  parseSubject,
  RELATION_NAME,
  type RelationTuple,
  type SubjectReference,
  WILDCARD,
} from './tuple.ts'

/** A wrong part of a tuple. `message` is for the client: it quotes the model, never the part. */
export interface TupleMistake {
  readonly part: keyof RelationTuple
  readonly message: string
}

const NOT_AN_OBJECT = 'must be an object, type:id, with reserved characters percent-encoded'
const NOT_A_RELATION = 'must be the name of a relation'
const NOT_A_TYPE = 'has a type that the model does not define'
const NOT_OF_TYPE = 'has a relation that its type does not define'
const NOT_A_SUBJECT =
  'must be a subject: type:id, type:id#relation or type:*, with reserved characters of an id ' +
  'percent-encoded'

/** Returns the first syntax error. Does NOT check the model: obsolete tuples can be deleted. */
export function mistakeOfSyntax(tuple: RelationTuple): TupleMistake | undefined {
  if (parseObject(tuple.object) === undefined) return { part: 'object', message: NOT_AN_OBJECT }
  if (!RELATION_NAME.test(tuple.relation)) return { part: 'relation', message: NOT_A_RELATION }
  if (parseSubject(tuple.subject) === undefined) return { part: 'subject', message: NOT_A_SUBJECT }
  return undefined
}

/** Returns why a query cannot use an object and a relation to it; undefined if it can. */
export function mistakeOfRelation(
  model: RelationModel,
  { object, relation }: Pick<RelationTuple, 'object' | 'relation'>,
): TupleMistake | undefined {
  const type = parseObject(object)?.type
  if (type === undefined) return { part: 'object', message: NOT_AN_OBJECT }
  const relations = model.types.get(type)
  if (relations === undefined) return { part: 'object', message: NOT_A_TYPE }
  if (!RELATION_NAME.test(relation)) return { part: 'relation', message: NOT_A_RELATION }
  if (!relations.has(relation))
    return { part: 'relation', message: `must be a relation of ${type}` }
  return undefined
}

/** Returns why a query cannot use a subject; undefined if it can. */
export function mistakeOfSubject(model: RelationModel, subject: string): TupleMistake | undefined {
  const named = parseSubject(subject)
  if (named === undefined) return { part: 'subject', message: NOT_A_SUBJECT }
  const relations = model.types.get(named.type)
  if (relations === undefined) return { part: 'subject', message: NOT_A_TYPE }
  if (named.relation !== undefined && !relations.has(named.relation))
    return { part: 'subject', message: NOT_OF_TYPE }
  return undefined
}

/** Returns why a tuple cannot be written; undefined if it can. */
export function mistakeOfTuple(
  model: RelationModel,
  tuple: RelationTuple,
): TupleMistake | undefined {
  const mistake = mistakeOfRelation(model, tuple) ?? mistakeOfSubject(model, tuple.subject)
  if (mistake !== undefined) return mistake
  const type = parseObject(tuple.object)?.type ?? ''
  const { directTypes = [] } = model.types.get(type)?.get(tuple.relation) ?? {}
  const named = `${type}#${tuple.relation}`
  if (directTypes.length === 0)
    return {
      part: 'relation',
      message: `${named} is computed from other relations; tuples cannot assign it`,
    }
  const subject = parseSubject(tuple.subject)
  const kinds = directTypes.map(kindOf)
  if (subject !== undefined && kinds.includes(kindOfSubject(subject))) return undefined
  return { part: 'subject', message: `${named} can be assigned to ${kinds.join(', ')} only` }
}

function kindOfSubject({ type, id, relation }: SubjectReference): string {
  if (relation !== undefined) return `${type}#${relation}`
  return id === WILDCARD ? `${type}:${WILDCARD}` : type
}
