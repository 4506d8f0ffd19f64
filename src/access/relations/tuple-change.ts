/** Describes changes of tuples for the audit trail, and finds the subjects in a description. */
import type { TupleChanges } from './store.ts'
import { formatTuple, WILDCARD } from './tuple.ts'

/** Maximum size of the description as JSON in UTF-8: the size of an audit event is bounded. */
export const MAX_TUPLE_CHANGE_BYTES = 24_576

/**
 * Returns one text: `tenant=<tenant>`, percent-encoded, if there is a tenant; then each tuple, with
 * `+` if it was written or `-` if it was deleted. Spaces separate the parts. No part contains white
 * space.
 */
export function tupleChange(tenant: string | null, { writes, deletes }: TupleChanges): string {
  return [
    ...(tenant === null ? [] : [`tenant=${encodeURIComponent(tenant.toWellFormed())}`]),
    ...writes.map((tuple) => `+${formatTuple(tuple)}`),
    ...deletes.map((tuple) => `-${formatTuple(tuple)}`),
  ].join(' ')
}

/** Separates the parts of an id in policies that put more than the subject into it. */
const SEPARATOR = '|'
/** The number of runs grows with the square of this number. */
const MAX_PARTS = 6

/**
 * Returns the ids of objects and subjects that a {@link tupleChange} names: each whole id, and
 * every run of its parts between `|`. Ids are in their written form; each is listed once.
 */
export function idsInChange(text: string): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const word of text.split(' ')) {
    if (!/^[+-]/.test(word)) continue
    for (const [, id = ''] of word.matchAll(/:([^:#]+)/g)) {
      ids.add(id)
      const parts = id.split(SEPARATOR).slice(0, MAX_PARTS)
      for (const from of parts.keys())
        for (let to = from + 1; to <= parts.length; to += 1)
          ids.add(parts.slice(from, to).join(SEPARATOR))
    }
  }
  return ids
}

/**
 * Returns the subject for an id of {@link idsInChange}; undefined if the id is the wildcard or is
 * malformed. If the id is a part of a longer id, separators in the subject are still escaped.
 */
export function subjectOfId(id: string): string | undefined {
  try {
    return id === WILDCARD ? undefined : decodeURIComponent(id)
  } catch {
    return undefined
  }
}
