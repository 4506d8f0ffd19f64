import {
  type DirectType,
  kindOf,
  type ModelMistake,
  partsOf,
  type RelationDefinition,
  type RelationModel,
  type Userset,
  usersetsOf,
} from './model.ts'
import { possibleRelations } from './reach.ts'
import { RELATION_NAME } from './tuple.ts'

/** The limit keeps the check script, which contains the model, small enough to send. */
const MAX_TYPES = 100
/** Usersets and direct types of all relations together. */
const MAX_PARTS = 2_000
/** Levels of nested usersets: parentheses in OpenFGA's language. */
const MAX_NESTING = 10

/** Keywords of OpenFGA. */
const RESERVED: ReadonlySet<string> = new Set(['self', 'this'])
const NOT_A_NAME =
  'is not a name: a letter or _, then up to 62 letters, digits, _ and -; neither self nor this'

/**
 * Returns all mistakes of a model, in the order of its types and relations. Checks whether
 * relations are possible only if there are no other mistakes, because those would cause this one
 * too.
 */
export function mistakesInModel(model: RelationModel): readonly ModelMistake[] {
  const mistakes = [...mistakesInSize(model)]
  if (mistakes.length > 0) return mistakes
  for (const [type, relations] of model.types) {
    if (!isName(type)) mistakes.push({ at: type || '""', why: NOT_A_NAME })
    for (const [relation, definition] of relations) {
      const at = `${type}#${relation}`
      if (!isName(relation)) mistakes.push({ at, why: NOT_A_NAME })
      for (const why of [
        ...mistakesInDirectTypes(model, definition),
        ...mistakesInUserset(model, relations, definition.userset),
      ])
        mistakes.push({ at, why })
    }
  }
  return mistakes.length > 0 ? mistakes : [...mistakesInReach(model)]
}

const isName = (name: string): boolean => RELATION_NAME.test(name) && !RESERVED.has(name)

function* mistakesInSize({ types }: RelationModel): Generator<ModelMistake> {
  if (types.size === 0) yield { at: 'model', why: 'has no types' }
  if (types.size > MAX_TYPES) yield { at: 'model', why: `has more than ${MAX_TYPES} types` }
  let parts = 0
  for (const [type, relations] of types) {
    for (const [relation, { userset, directTypes }] of relations) {
      parts += directTypes.length + [...usersetsOf(userset)].length
      if (nestingOf(userset) > MAX_NESTING)
        yield { at: `${type}#${relation}`, why: `is nested deeper than ${MAX_NESTING} levels` }
    }
  }
  if (parts > MAX_PARTS)
    yield { at: 'model', why: `has more than ${MAX_PARTS} usersets and direct types` }
}

const nestingOf = (userset: Userset): number =>
  Math.max(0, ...partsOf(userset).map((part) => 1 + nestingOf(part)))

function* mistakesInDirectTypes(
  { types }: RelationModel,
  { userset, directTypes }: RelationDefinition,
): Generator<string> {
  const isDirect = [...usersetsOf(userset)].some(({ kind }) => kind === 'direct')
  if (isDirect && directTypes.length === 0)
    yield 'can be assigned directly, but has no direct types'
  if (!isDirect && directTypes.length > 0) yield 'has direct types, but cannot be assigned directly'
  const seen = new Set<string>()
  for (const direct of directTypes) {
    const written = kindOf(direct)
    if (seen.has(written)) yield `${written} is listed twice`
    seen.add(written)
    const relations = types.get(direct.type)
    if (relations === undefined) yield `${written}: unknown type ${direct.type}`
    else if (direct.kind === 'userset' && !relations.has(direct.relation))
      yield `${written}: ${direct.type} has no relation ${direct.relation}`
  }
}

function* mistakesInUserset(
  model: RelationModel,
  relations: ReadonlyMap<string, RelationDefinition>,
  userset: Userset,
): Generator<string> {
  for (const part of usersetsOf(userset)) {
    if (part.kind === 'computed' && !relations.has(part.relation))
      yield `there is no relation ${part.relation}`
    if (part.kind === 'tuple_to_userset') {
      const from = relations.get(part.tupleset)
      if (from === undefined) yield `there is no relation ${part.tupleset}`
      else yield* mistakesInTupleset(model, from, part.tupleset, part.computed)
    }
  }
}

/** Applies OpenFGA's rule: a tupleset is a direct relation, and its tuples name objects only. */
function* mistakesInTupleset(
  { types }: RelationModel,
  { userset, directTypes }: RelationDefinition,
  tupleset: string,
  computed: string,
): Generator<string> {
  const name = `${computed} from ${tupleset}`
  if (userset.kind !== 'direct') yield `${name}: ${tupleset} must name types and nothing else`
  const other = directTypes.find(({ kind }) => kind !== 'object')
  if (other !== undefined) yield `${name}: ${tupleset} must not name ${kindOf(other)}, but objects`
  if (!directTypes.some(({ type }: DirectType) => types.get(type)?.has(computed)))
    yield `${name}: no type that ${tupleset} names has a relation ${computed}`
}

function* mistakesInReach(model: RelationModel): Generator<ModelMistake> {
  const cycles = [...cyclesIn(model)]
  yield* cycles
  if (cycles.length > 0) return
  const possible = possibleRelations(model, false)
  const entered = possibleRelations(model, true)
  for (const [type, relations] of model.types)
    for (const [relation, { userset }] of relations) {
      const at = `${type}#${relation}`
      const excludes = [...usersetsOf(userset)].some(({ kind }) => kind === 'exclusion')
      if (!possible.has(at)) yield { at, why: 'no subject can ever have it' }
      // A relation without an exclusion only inherits the mistake from a relation that has one.
      else if (!entered.has(at) && excludes)
        yield { at, why: 'no subject can ever be excluded from it' }
    }
}

/**
 * Yields each relation that computed usersets lead back to at the same object, with the path:
 * `viewer > editor > viewer`. Does NOT report cycles through tuples: the check stops at them.
 */
function* cyclesIn({ types }: RelationModel): Generator<ModelMistake> {
  for (const [type, relations] of types) {
    const done = new Set<string>()
    const path: string[] = []
    const cycles = new Map<string, string>()
    const visit = (relation: string): void => {
      const start = path.indexOf(relation)
      if (start !== -1) cycles.set(relation, [...path.slice(start), relation].join(' > '))
      if (start !== -1 || done.has(relation)) return
      path.push(relation)
      for (const part of usersetsOf(relations.get(relation)?.userset ?? { kind: 'direct' }))
        if (part.kind === 'computed') visit(part.relation)
      path.pop()
      done.add(relation)
    }
    for (const relation of relations.keys()) visit(relation)
    for (const [relation, cycle] of cycles)
      yield { at: `${type}#${relation}`, why: `depends on itself: ${cycle}` }
  }
}
