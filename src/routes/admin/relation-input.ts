/** Checks of the input of calls about relations. */
import { Denied, type InputError } from '../../errors.ts'
import type { RelationModel } from '../../relations/model.ts'
import { mistakeOfGrammar, mistakeOfTuple, type TupleMistake } from '../../relations/permitted.ts'
import type { RelationTuple } from '../../relations/tuple.ts'
import { inputRefused, unknownId } from './call.ts'
import type { AdminOptions, AdminRelations } from './stores.ts'

/** Returns the relations of the policy. Throws `Denied` (`route_unknown`) if it has none. */
export function relationsOf({ relations }: Pick<AdminOptions, 'relations'>): AdminRelations {
  if (relations === undefined) throw unknownId()
  return relations
}

/**
 * Returns the tuple store. Throws `Denied` (`input_invalid`) if an external policy decision point
 * stores the tuples.
 */
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

/** Throws `Denied` (`input_invalid`) with the mistake of each bad tuple: 100 findings at most. */
export function refuseBadTuples(model: RelationModel, written: NamedTuples, deleted: NamedTuples) {
  const errors = [
    ...errorsIn(written, (tuple) => mistakeOfTuple(model, tuple)),
    // A tuple that the model does not permit may still exist. It can be deleted.
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

/** Throws `Denied` (`input_invalid`) for a mistake in a part of a body. */
export function refuseMistake(mistake: TupleMistake | undefined): void {
  if (mistake !== undefined) throw inputRefused('body', `/${mistake.part}`, mistake.message)
}
