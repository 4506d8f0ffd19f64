/**
 * Finds the relations of a model that subjects can have (OpenFGA's entrypoints), and those that
 * form cycles.
 */
import { type RelationDefinition, type RelationModel, type Userset, usersetsOf } from './model.ts'

type Relations = ReadonlyMap<string, RelationDefinition>

/**
 * Returns the relations that computed usersets lead back to at the same object, without a tuple
 * between them. The value is the path: `document#viewer` has `viewer > editor > viewer`. Cycles
 * through tuples are not reported: tuples are data, and the check stops at them. Expects that every
 * name in the model is defined.
 */
export function relationsInCycles({
  types,
}: RelationModel): ReadonlyMap<string, readonly string[]> {
  const cycles = new Map<string, readonly string[]>()
  for (const [type, relations] of types) {
    const done = new Set<string>()
    const path: string[] = []
    const visit = (relation: string): void => {
      const start = path.indexOf(relation)
      if (start !== -1) {
        cycles.set(`${type}#${relation}`, [...path.slice(start), relation])
        return
      }
      if (done.has(relation)) return
      path.push(relation)
      for (const next of computedBy(relations.get(relation))) visit(next)
      path.pop()
      done.add(relation)
    }
    for (const relation of relations.keys()) visit(relation)
  }
  return cycles
}

function computedBy(definition: RelationDefinition | undefined): readonly string[] {
  if (definition === undefined) return []
  return [...usersetsOf(definition.userset)].flatMap((part) =>
    part.kind === 'computed' ? [part.relation] : [],
  )
}

/**
 * Returns the relations that a subject could have, as `type#relation`: the least fixpoint of the
 * definitions. An exclusion is possible where its base is possible. Expects that every name in the
 * model is defined.
 */
export const possibleRelations = (model: RelationModel): ReadonlySet<string> =>
  leastSet(model, false)

/**
 * Returns the relations that have an entrypoint by OpenFGA's rule: a subject could have them, and
 * each exclusion could exclude a subject. Expects that every name in the model is defined.
 */
export const relationsWithEntrypoint = (model: RelationModel): ReadonlySet<string> =>
  leastSet(model, true)

function leastSet({ types }: RelationModel, bothSides: boolean): ReadonlySet<string> {
  const possible = new Set<string>()
  const all = [...types].flatMap(([type, relations]) =>
    [...relations].map(([relation, definition]) => ({
      at: `${type}#${relation}`,
      place: { definition, type, relations, possible, bothSides },
    })),
  )
  const dependents = Map.groupBy(
    all.flatMap((one) => leadsTo(one.place).map((at) => ({ at, one }))),
    ({ at }) => at,
  )
  const left = [...all]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (possible.has(next.at) || !holds(next.place.definition.userset, next.place)) continue
    possible.add(next.at)
    for (const { one } of dependents.get(next.at) ?? []) left.push(one)
  }
  return possible
}

/** Returns the relations that a definition names, of its own type and of other types. */
function leadsTo({ definition, type, relations }: Place): readonly string[] {
  const direct = definition.directTypes.flatMap((one) =>
    one.kind === 'userset' ? [`${one.type}#${one.relation}`] : [],
  )
  const parts = [...usersetsOf(definition.userset)].flatMap((part) => {
    if (part.kind === 'computed') return [`${type}#${part.relation}`]
    if (part.kind !== 'tuple_to_userset') return []
    const parents = relations.get(part.tupleset)?.directTypes ?? []
    return parents.map((parent) => `${parent.type}#${part.computed}`)
  })
  return [...direct, ...parts]
}

interface Place {
  readonly definition: RelationDefinition
  readonly type: string
  readonly relations: Relations
  readonly possible: ReadonlySet<string>
  /** Whether an exclusion requires its subtracted part to be possible as well. */
  readonly bothSides: boolean
}

function holds(userset: Userset, place: Place): boolean {
  const { definition, type, relations, possible, bothSides } = place
  const also = (part: Userset) => holds(part, place)
  switch (userset.kind) {
    case 'direct':
      return definition.directTypes.some(
        (direct) => direct.kind !== 'userset' || possible.has(`${direct.type}#${direct.relation}`),
      )
    case 'computed':
      return possible.has(`${type}#${userset.relation}`)
    case 'tuple_to_userset':
      return (relations.get(userset.tupleset)?.directTypes ?? []).some((parent) =>
        possible.has(`${parent.type}#${userset.computed}`),
      )
    case 'union':
      return userset.of.some(also)
    case 'intersection':
      return userset.of.every(also)
    case 'exclusion':
      return also(userset.base) && (!bothSides || also(userset.subtract))
  }
}
