/** Where the tuples of a call are, and what is wrong with those that it names. */
import { Denied, type InputError } from '../../errors.ts'
import type { RelationModel } from '../../relations/model.ts'
import { mistakeOfGrammar, mistakeOfTuple, type TupleMistake } from '../../relations/permitted.ts'
import type { RelationTuple } from '../../relations/tuple.ts'
import { inputRefused, unknownId } from './call.ts'
import type { AdminOptions, AdminRelations } from './stores.ts'

/** Of the policy. Throws `Denied` (`route_unknown`) where it has none. */
export function relationsOf({ relations }: Pick<AdminOptions, 'relations'>): AdminRelations {
  if (relations === undefined) throw unknownId()
  return relations
}

/** The store. Throws `Denied` (`input_invalid`) where another authority keeps the tuples. */
export function tuplesOf({ tuples }: AdminRelations, where: 'query' | 'body') {
  if (tuples === undefined)
    throw inputRefused(
      where,
      '',
      'is about tuples, which the external authority of the policy keeps',
    )
  return tuples
}

/** Tuples of a body, by the name of their list. */
export type NamedTuples = readonly (readonly [list: string, tuples: readonly RelationTuple[]])[]

/** Throws `Denied` (`input_invalid`) with what is wrong with each: 100 findings at most. */
export function refuseBadTuples(model: RelationModel, written: NamedTuples, deleted: NamedTuples) {
  const errors = [
    ...errorsIn(written, (tuple) => mistakeOfTuple(model, tuple)),
    // What is there although the model does not permit it can be deleted.
    ...errorsIn(deleted, mistakeOfGrammar),
  ]
  if (errors.length > 0) throw new Denied({ code: 'input_invalid', errors })
}

function errorsIn(
  named: NamedTuples,
  mistakeOf: (tuple: RelationTuple) => TupleMistake | undefined,
): readonly InputError[] {
  return named.flatMap(([list, tuples]) =>
    tuples.flatMap((tuple, index): InputError[] => {
      const mistake = mistakeOf(tuple)
      if (mistake === undefined) return []
      const path = `/${list}/${index}/${mistake.part}`
      return [{ in: 'body', path, message: mistake.message }]
    }),
  )
}

/** Throws `Denied` (`input_invalid`) for a part of a body that is wrong. */
export function refuseMistake(mistake: TupleMistake | undefined): void {
  if (mistake !== undefined) throw inputRefused('body', `/${mistake.part}`, mistake.message)
}
