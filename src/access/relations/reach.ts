/** Finds the kinds of subjects that could have a relation, by the model alone. */
import { kindOf, type RelationModel, type Userset } from './model.ts'

/** The reachable kinds of subjects: `user`, `user:*`, `group#member`. */
export interface Reach {
  /** The bit position of each kind in the sets of {@link kindsOf}. */
  readonly places: ReadonlyMap<string, number>
  /**
   * Sets of kinds by `type#relation`, one bit for each kind. A subject of any other kind is denied,
   * whatever tuples exist. A subject of one of these kinds may still be denied.
   */
  readonly kindsOf: ReadonlyMap<string, bigint>
}

const NONE = 0n
const bit = (place: number): bigint => 1n << BigInt(place)

const computed = new WeakMap<RelationModel, Reach>()

/** Returns the reach of a model. Cached by model, because a large one takes milliseconds. */
export function computeReach(model: RelationModel): Reach {
  let reach = computed.get(model)
  if (reach === undefined) {
    const places = placesIn(model)
    const bitOf = (kind: string) => bit(places.get(kind) ?? 0)
    reach = { places, kindsOf: leastSets(model, { bitOf, ownBitOf: bitOf }) }
    computed.set(model, reach)
  }
  return reach
}

/** Reports whether subjects of a kind could have a relation, `type#relation`. */
export function canReach({ places, kindsOf }: Reach, at: string, kind: string): boolean {
  const place = places.get(kind)
  return place !== undefined && ((kindsOf.get(at) ?? NONE) & bit(place)) !== NONE
}

/**
 * Returns the relations that a subject could have, as `type#relation`. With `bothSides`, these are
 * the relations that have an entrypoint by OpenFGA's rule: each exclusion could exclude a subject as
 * well. Expects that every name in the model is defined.
 */
export function possibleRelations(model: RelationModel, bothSides: boolean): ReadonlySet<string> {
  const sets = leastSets(model, { bitOf: () => 1n, ownBitOf: () => NONE, bothSides })
  return new Set([...sets].flatMap(([at, kinds]) => (kinds === NONE ? [] : [at])))
}

function placesIn({ types }: RelationModel): ReadonlyMap<string, number> {
  const kinds = new Set(types.keys())
  for (const [type, relations] of types) {
    for (const [relation, { directTypes }] of relations) {
      kinds.add(`${type}#${relation}`)
      for (const direct of directTypes) kinds.add(kindOf(direct))
    }
  }
  return new Map([...kinds].map((kind, place) => [kind, place]))
}

interface Bits {
  /** Returns the bit of a kind that tuples name. */
  readonly bitOf: (kind: string) => bigint
  /** Returns the bit with which the set of a relation, `type#relation`, starts. */
  readonly ownBitOf: (at: string) => bigint
  /** Whether an exclusion has only the kinds of both its parts. Default: those of its base. */
  readonly bothSides?: boolean
}

/**
 * Computes the least fixpoint of all definitions: a relation that leads only to itself gets nothing
 * but its own bit. Evaluates a relation again only when a relation that it reads has changed.
 */
function leastSets(
  { types }: RelationModel,
  { bitOf, ownBitOf, bothSides = false }: Bits,
): ReadonlyMap<string, bigint> {
  const all = [...types].flatMap(([type, relations]) =>
    [...relations].map(([relation, definition]) => {
      return { at: `${type}#${relation}`, type, relations, ...definition }
    }),
  )
  type Relation = (typeof all)[number]
  const sets = new Map(all.map(({ at }) => [at, ownBitOf(at)]))
  const readers = new Map<string, Set<Relation>>()

  function read(at: string, reader: Relation): bigint {
    const readersOfThis = readers.get(at) ?? new Set()
    readers.set(at, readersOfThis.add(reader))
    return sets.get(at) ?? NONE
  }

  function kindsIn(userset: Userset, relation: Relation): bigint {
    const of = (part: Userset) => kindsIn(part, relation)
    switch (userset.kind) {
      case 'direct':
        return relation.directTypes.reduce((kinds, direct) => {
          const kind = kindOf(direct)
          // A userset passes the relation on to the subjects that it reaches.
          if (direct.kind === 'userset')
            return kinds | (sets.has(kind) ? read(kind, relation) : bitOf(kind))
          // A wildcard names every subject of its type as well.
          return kinds | bitOf(kind) | bitOf(direct.type)
        }, NONE)
      case 'computed':
        return read(`${relation.type}#${userset.relation}`, relation)
      case 'tuple_to_userset':
        return (relation.relations.get(userset.tupleset)?.directTypes ?? [])
          .filter(({ kind }) => kind === 'object')
          .reduce((kinds, { type }) => kinds | read(`${type}#${userset.computed}`, relation), NONE)
      case 'union':
        return userset.of.reduce((kinds, part) => kinds | of(part), NONE)
      case 'intersection':
        return userset.of.map(of).reduce((kinds, part) => kinds & part)
      case 'exclusion':
        return bothSides ? of(userset.base) & of(userset.subtract) : of(userset.base)
      default:
        return userset satisfies never
    }
  }

  const left = [...all]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const before = sets.get(next.at) ?? NONE
    const kinds = before | kindsIn(next.userset, next)
    if (kinds === before) continue
    sets.set(next.at, kinds)
    left.push(...(readers.get(next.at) ?? []))
  }
  return sets
}
