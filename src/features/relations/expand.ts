/** Expands one level of a relation to an object, in the form of OpenFGA's `expand`. */
import { type RelationModel, type Userset, usersetsOf } from '../../access/relations/model.ts'
import { mistakeOfTuple } from '../../access/relations/permitted.ts'
import type { NamedSubjects } from '../../access/relations/store.ts'
import { parseSubject } from '../../access/relations/tuple.ts'

interface Expansion {
  readonly model: RelationModel
  readonly object: string
  readonly relation: string
  /** The subjects of every relation in {@link relationsIn}. */
  readonly named: ReadonlyMap<string, NamedSubjects>
}

/** Returns the relations of the same object that an expansion reads tuples of, each once. */
export function relationsIn(userset: Userset, relation: string): readonly string[] {
  const relations = [...usersetsOf(userset)].flatMap((part) => {
    if (part.kind === 'direct') return [relation]
    return part.kind === 'tuple_to_userset' ? [part.tupleset] : []
  })
  return [...new Set(relations)]
}

/**
 * Returns the tree of a definition. Each `name` is the `object#relation` of the request. Leaves omit
 * subjects that the model does not permit. Does NOT follow the usersets that the definition names.
 */
export function expanded(userset: Userset, expansion: Expansion): object {
  const { object, relation } = expansion
  const name = `${object}#${relation}`
  switch (userset.kind) {
    case 'direct': {
      const { subjects, more } = permitted(relation, expansion)
      return { name, leaf: { users: { users: subjects, ...more } } }
    }
    case 'computed':
      return { name, leaf: { computed: { userset: `${object}#${userset.relation}` } } }
    case 'tuple_to_userset': {
      const { subjects, more } = permitted(userset.tupleset, expansion)
      const computed = subjects
        .filter((subject) => leadsTo(subject, userset.computed, expansion.model))
        .map((subject) => ({ userset: `${subject}#${userset.computed}` }))
      const tupleset = `${object}#${userset.tupleset}`
      return { name, leaf: { tupleToUserset: { tupleset, computed, ...more } } }
    }
    case 'union':
      return { name, union: { nodes: userset.of.map((part) => expanded(part, expansion)) } }
    case 'intersection':
      return { name, intersection: { nodes: userset.of.map((part) => expanded(part, expansion)) } }
    case 'exclusion': {
      const base = expanded(userset.base, expansion)
      return { name, difference: { base, subtract: expanded(userset.subtract, expansion) } }
    }
    default:
      return userset satisfies never
  }
}

function permitted(relation: string, { model, object, named }: Expansion) {
  const { subjects, hasMore } = named.get(relation) ?? { subjects: [], hasMore: false }
  const isPermitted = (subject: string) =>
    mistakeOfTuple(model, { object, relation, subject }) === undefined
  return { subjects: subjects.filter(isPermitted), more: hasMore ? ({ hasMore } as const) : {} }
}

/** Reports whether the subject of a tupleset is an object of a type that has the relation. */
function leadsTo(text: string, relation: string, model: RelationModel): boolean {
  const subject = parseSubject(text)
  const isObject = subject !== undefined && subject.relation === undefined
  return isObject && model.types.get(subject.type)?.has(relation) === true
}
