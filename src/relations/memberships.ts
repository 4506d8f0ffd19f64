/** Relations that can be looked up from the subject's side, by the model alone. */
import {
  formatDirectType,
  type RelationDefinition,
  type RelationModel,
  type Userset,
} from './model.ts'

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
  const candidates = new Map<string, Candidate>()
  const add = (type: string, relation: string): void => {
    const definition = model.types.get(type)?.get(relation)
    if (definition === undefined || candidates.has(`${type}#${relation}`)) return
    candidates.set(`${type}#${relation}`, { type, ...definition })
    for (const part of alternativesOf(definition.userset))
      if (part.kind === 'computed') add(type, part.relation)
  }
  for (const relations of model.types.values())
    for (const { directTypes } of relations.values())
      for (const direct of directTypes)
        if (direct.kind === 'userset') add(direct.type, direct.relation)

  // The greatest set that is made of nothing but itself: one that goes may take others along.
  for (let before = -1; before !== candidates.size; ) {
    before = candidates.size
    for (const [at, candidate] of candidates)
      if (!isMadeOf(candidates, candidate)) candidates.delete(at)
  }
  return new Set(candidates.keys())
}

/** A relation that tuples name, or that such a one is computed from, and the type that has it. */
interface Candidate extends RelationDefinition {
  readonly type: string
}

/** Whether a relation is made of tuples and of some of these alone. */
const isMadeOf = (
  memberships: ReadonlyMap<string, unknown>,
  { type, userset, directTypes }: Candidate,
): boolean =>
  alternativesOf(userset).every((part) => {
    if (part.kind === 'computed') return memberships.has(`${type}#${part.relation}`)
    return (
      part.kind === 'direct' &&
      directTypes.every((one) => one.kind !== 'userset' || memberships.has(formatDirectType(one)))
    )
  })
