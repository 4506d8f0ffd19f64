/** Finds the relations that can be looked up from the subject's side, by the model alone. */
import { kindOf, type RelationDefinition, type RelationModel, type Userset } from './model.ts'

/** Returns the parts of a union and of the unions in it; any other userset by itself. */
export const alternativesOf = (userset: Userset): readonly Userset[] =>
  userset.kind === 'union' ? userset.of.flatMap(alternativesOf) : [userset]

/**
 * Returns the memberships of a model as `type#relation`, such as `group#member`. A membership is a
 * relation that tuples name as a subject, and that is made only of tuples and of other memberships.
 *
 * A subject has a membership through a chain of tuples that each add a subject. No other relation
 * can take it away. So following tuples from the subject finds all of its memberships.
 */
export function findMemberships(model: RelationModel): ReadonlySet<string> {
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

  // Computes the greatest fixpoint: the removal of one candidate can make other candidates invalid.
  for (let before = -1; before !== candidates.size; ) {
    before = candidates.size
    for (const [at, candidate] of candidates)
      if (!isMadeOf(candidates, candidate)) candidates.delete(at)
  }
  return new Set(candidates.keys())
}

/** A relation that tuples name as a subject, or from which such a relation is computed. */
interface Candidate extends RelationDefinition {
  readonly type: string
}

/** Reports whether a relation is made only of tuples and of the given memberships. */
const isMadeOf = (
  memberships: ReadonlyMap<string, unknown>,
  { type, userset, directTypes }: Candidate,
): boolean =>
  alternativesOf(userset).every((part) => {
    if (part.kind === 'computed') return memberships.has(`${type}#${part.relation}`)
    return (
      part.kind === 'direct' &&
      directTypes.every((one) => one.kind !== 'userset' || memberships.has(kindOf(one)))
    )
  })
