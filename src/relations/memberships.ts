/** Relations that can be looked up from the subject's side, by the model alone. */
import { formatDirectType, type RelationModel, type Userset } from './model.ts'

/** The parts of a union, those of unions within it included; a userset that is none, by itself. */
export const alternativesOf = (userset: Userset): readonly Userset[] =>
  userset.kind === 'union' ? userset.of.flatMap(alternativesOf) : [userset]

/**
 * Relations, as `type#relation`, such as `group#member`: tuples name those who have them, and they
 * are made of nothing but tuples and of each other. Whoever has one has it by a chain of tuples each
 * of which adds somebody, so all that a subject has can be found by following tuples from the
 * subject on; no other relation of anybody can take it away.
 */
export function membershipsOf(model: RelationModel): ReadonlySet<string> {
  const named = new Set<string>()
  const name = (type: string, relation: string): void => {
    const definition = model.types.get(type)?.get(relation)
    if (definition === undefined || named.has(`${type}#${relation}`)) return
    named.add(`${type}#${relation}`)
    for (const part of alternativesOf(definition.userset))
      if (part.kind === 'computed') name(type, part.relation)
  }
  for (const relations of model.types.values())
    for (const { directTypes } of relations.values())
      for (const direct of directTypes)
        if (direct.kind === 'userset') name(direct.type, direct.relation)

  const isMade = (at: string): boolean => {
    const [type = '', relation = ''] = at.split('#')
    const definition = model.types.get(type)?.get(relation)
    return alternativesOf(definition?.userset ?? { kind: 'union', of: [] }).every((part) => {
      if (part.kind === 'computed') return named.has(`${type}#${part.relation}`)
      const usersets = (definition?.directTypes ?? []).filter(({ kind }) => kind === 'userset')
      return part.kind === 'direct' && usersets.every((one) => named.has(formatDirectType(one)))
    })
  }
  for (let before = -1; before !== named.size; ) {
    before = named.size
    for (const at of [...named]) if (!isMade(at)) named.delete(at)
  }
  return named
}
