/** Finds the kinds of subjects that could have a relation, by the model alone. */
import { formatDirectType, type RelationModel, type Userset } from './model.ts'

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

const known = new WeakMap<RelationModel, Reach>()

/**
 * Returns the reach of a model. Computes it once for each model, because a large model takes
 * milliseconds.
 */
export function reachOf(model: RelationModel): Reach {
  const reach = known.get(model) ?? leastReach(model)
  known.set(model, reach)
  return reach
}

/** Reports whether subjects of a kind could have a relation, `type#relation`. */
export function canReach({ places, kindsOf }: Reach, at: string, kind: string): boolean {
  const place = places.get(kind)
  return place !== undefined && ((kindsOf.get(at) ?? NONE) & bit(place)) !== NONE
}

const NONE = 0n
const bit = (place: number): bigint => 1n << BigInt(place)

/** Computes the least fixpoint: a relation that leads only to itself reaches nothing. */
function leastReach(model: RelationModel): Reach {
  const places = placesIn(model)
  const kindsOf = new Map<string, bigint>()
  const bitOf = (kind: string) => bit(places.get(kind) ?? 0)
  for (const [type, relations] of model.types)
    for (const relation of relations.keys())
      kindsOf.set(`${type}#${relation}`, bitOf(`${type}#${relation}`))
  for (let grows = true; grows; ) {
    grows = false
    for (const [type, relations] of model.types) {
      for (const [relation, { userset }] of relations) {
        const at = `${type}#${relation}`
        const before = kindsOf.get(at) ?? NONE
        const kinds = before | kindsIn(userset, { model, kindsOf, bitOf, type, relation })
        kindsOf.set(at, kinds)
        grows ||= kinds !== before
      }
    }
  }
  return { places, kindsOf }
}

function placesIn({ types }: RelationModel): ReadonlyMap<string, number> {
  const kinds = new Set(types.keys())
  for (const [type, relations] of types) {
    for (const [relation, { directTypes }] of relations) {
      kinds.add(`${type}#${relation}`)
      for (const direct of directTypes) kinds.add(formatDirectType(direct))
    }
  }
  return new Map([...kinds].map((kind, place) => [kind, place]))
}

interface Place extends Pick<Reach, 'kindsOf'> {
  readonly model: RelationModel
  readonly bitOf: (kind: string) => bigint
  readonly type: string
  readonly relation: string
}

function kindsIn(userset: Userset, place: Place): bigint {
  const { model, kindsOf, bitOf, type, relation } = place
  const of = (part: Userset) => kindsIn(part, place)
  const directTypes = (name: string) => model.types.get(type)?.get(name)?.directTypes ?? []
  switch (userset.kind) {
    case 'direct':
      return directTypes(relation).reduce((kinds, direct) => {
        const kind = formatDirectType(direct)
        // A wildcard names every subject of its type as well. A userset passes the relation on to
        // the subjects that it reaches.
        if (direct.kind === 'wildcard') return kinds | bitOf(kind) | bitOf(direct.type)
        return kinds | (kindsOf.get(kind) ?? bitOf(kind))
      }, NONE)
    case 'computed':
      return kindsOf.get(`${type}#${userset.relation}`) ?? NONE
    case 'tuple_to_userset':
      return directTypes(userset.tupleset)
        .filter(({ kind }) => kind === 'object')
        .reduce((all, one) => all | (kindsOf.get(`${one.type}#${userset.computed}`) ?? NONE), NONE)
    case 'union':
      return userset.of.map(of).reduce((all, kinds) => all | kinds, NONE)
    case 'intersection': {
      const [first = NONE, ...others] = userset.of.map(of)
      return others.reduce((all, kinds) => all & kinds, first)
    }
    case 'exclusion':
      return of(userset.base)
    default:
      return userset satisfies never
  }
}
