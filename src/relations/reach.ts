/** Which kinds of subjects could ever have a relation, by the model alone. */
import type { RelationModel, Userset } from './model.ts'
import type { SubjectReference } from './tuple.ts'

/** `user`, `group#member`, or `user:*`: what of a subject a model speaks of. */
export const kindOf = ({
  type,
  id,
  relation,
}: Pick<SubjectReference, 'type' | 'relation'> & { readonly id?: string }): string => {
  if (relation !== undefined) return `${type}#${relation}`
  return id === '*' ? `${type}:*` : type
}

/**
 * Kinds of subjects by `type#relation`. A subject of any other kind is denied whatever tuples there
 * are; one that is among them may be denied for all that. The least fixpoint: what leads to itself
 * alone reaches nothing.
 */
export function reachOf(model: RelationModel): ReadonlyMap<string, ReadonlySet<string>> {
  const reach = new Map<string, Set<string>>()
  for (const [type, relations] of model.types)
    for (const relation of relations.keys())
      reach.set(`${type}#${relation}`, new Set([`${type}#${relation}`]))
  let grows = true
  while (grows) {
    grows = false
    for (const [type, relations] of model.types) {
      for (const [relation, { userset }] of relations) {
        const kinds = reach.get(`${type}#${relation}`)
        if (kinds === undefined) continue
        const before = kinds.size
        for (const kind of kindsOf(model, reach, type, relation, userset)) kinds.add(kind)
        grows ||= kinds.size > before
      }
    }
  }
  return reach
}

function kindsOf(
  model: RelationModel,
  reach: ReadonlyMap<string, ReadonlySet<string>>,
  type: string,
  relation: string,
  userset: Userset,
): ReadonlySet<string> {
  const of = (part: Userset) => kindsOf(model, reach, type, relation, part)
  const directTypes = (name: string) => model.types.get(type)?.get(name)?.directTypes ?? []
  switch (userset.kind) {
    case 'direct':
      return directTypes(relation).reduce((kinds, direct) => {
        if (direct.kind === 'wildcard') return kinds.add(direct.type).add(`${direct.type}:*`)
        if (direct.kind === 'object') return kinds.add(direct.type)
        const into = `${direct.type}#${direct.relation}`
        for (const kind of reach.get(into) ?? []) kinds.add(kind)
        kinds.add(into)
        return kinds
      }, new Set<string>())
    case 'computed':
      return reach.get(`${type}#${userset.relation}`) ?? new Set()
    case 'tuple_to_userset': {
      const objects = directTypes(userset.tupleset).filter(({ kind }) => kind === 'object')
      return new Set(
        objects.flatMap((object) => [...(reach.get(`${object.type}#${userset.computed}`) ?? [])]),
      )
    }
    case 'union':
      return new Set(userset.of.flatMap((part) => [...of(part)]))
    case 'intersection': {
      const [first, ...others] = userset.of.map(of)
      return new Set([...(first ?? [])].filter((kind) => others.every((other) => other.has(kind))))
    }
    case 'exclusion':
      return of(userset.base)
    default:
      return userset satisfies never
  }
}
