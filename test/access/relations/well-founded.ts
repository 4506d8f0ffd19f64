/**
 * Another implementation of the check: the well-founded model of all relations of all objects at
 * once, by the alternating fixpoint (Van Gelder 1993). It follows no paths and needs no handling of
 * cycles.
 */
import type { RelationModel, Userset } from '../../../src/access/relations/model.ts'
import {
  parseObject,
  parseSubject,
  type RelationTuple,
} from '../../../src/access/relations/tuple.ts'
import { isPermitted } from './oracle.ts'

/** The true relations by name, `type:id#relation`, and the sets that exclusions subtract. */
type Truths = ReadonlySet<string>
export type Truth = 'true' | 'false' | 'undefined'

/** Reports whether `subject` has each relation to each object of a small world. */
export function wellFounded(
  model: RelationModel,
  tuples: readonly RelationTuple[],
  subject: string,
): (node: string) => Truth {
  const permitted = tuples.filter((tuple) => isPermitted(model, tuple))
  const wanted = parseSubject(subject)
  const all = wanted !== undefined && wanted.relation === undefined ? `${wanted.type}:*` : subject
  const objects = new Set(
    [...permitted.flatMap((one) => [one.object, one.subject]), subject].flatMap((text) => {
      const one = parseSubject(text)
      return one === undefined || one.id === '*' ? [] : [`${one.type}:${one.id}`]
    }),
  )
  const named = (object: string, relation: string) =>
    permitted.flatMap((one) =>
      one.object === object && one.relation === relation ? [one.subject] : [],
    )

  /** Returns the smallest set of true relations if exclusions subtract exactly `taken`. */
  function consequences(taken: Truths): Set<string> {
    const truths = new Set<string>()
    for (let before = -1; before < truths.size; ) {
      before = truths.size
      for (const object of objects)
        for (const [relation, { userset }] of relationsOf(object)) {
          const node = `${object}#${relation}`
          if (holds(userset, object, relation, node) || node === subject) truths.add(node)
        }
    }
    return truths

    /** `name` identifies the userset itself, so that its subtracted set has a name. */
    function holds(userset: Userset, object: string, relation: string, name: string): boolean {
      const of = (part: Userset, index: number) => holds(part, object, relation, `${name}/${index}`)
      switch (userset.kind) {
        case 'direct':
          return named(object, relation).some(
            (one) => one === subject || one === all || truths.has(one),
          )
        case 'computed':
          return truths.has(`${object}#${userset.relation}`)
        case 'tuple_to_userset':
          return named(object, userset.tupleset).some((one) =>
            truths.has(`${one}#${userset.computed}`),
          )
        case 'union':
          return userset.of.map(of).some(Boolean)
        case 'intersection':
          return userset.of.map(of).every(Boolean)
        case 'exclusion': {
          const less = `${name}/less`
          if (of(userset.subtract, 1)) truths.add(less)
          return of(userset.base, 0) && !taken.has(less)
        }
        default:
          return userset satisfies never
      }
    }
  }

  const relationsOf = (object: string) =>
    model.types.get(parseObject(object)?.type ?? '') ?? new Map()

  let certain = new Set<string>()
  let possible = consequences(certain)
  for (let before = -1; before < certain.size; ) {
    before = certain.size
    certain = consequences(possible)
    possible = consequences(certain)
  }
  return (node) => {
    if (certain.has(node)) return 'true'
    return possible.has(node) ? 'undefined' : 'false'
  }
}
