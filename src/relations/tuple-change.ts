/** What the audit trail says of tuples that were written and deleted, and whom that names. */
import type { TupleChanges } from './store.ts'
import { formatTuple } from './tuple.ts'

/**
 * One text: `tenant:<tenant>` where there is one, percent-encoded, and behind a space each tuple, with
 * `+` if it was written and `-` if it was deleted. No part has white space in it.
 */
export function tupleChange(tenant: string | null, { writes, deletes }: TupleChanges): string {
  return [
    ...(tenant === null ? [] : [`tenant:${encodeURIComponent(tenant)}`]),
    ...writes.map((tuple) => `+${formatTuple(tuple)}`),
    ...deletes.map((tuple) => `-${formatTuple(tuple)}`),
  ].join(' ')
}
