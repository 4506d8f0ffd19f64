/** What the audit trail says of tuples that were written and deleted, and whom that names. */
import type { TupleChanges } from './store.ts'
import { formatTuple, WILDCARD } from './tuple.ts'

/** Of the text, as JSON has it, in UTF-8: the trail names every tuple, and an event has its bounds. */
export const MAX_TUPLE_CHANGE_BYTES = 24_576

/**
 * One text: `tenant=<tenant>` where there is one, percent-encoded, and behind a space each tuple, with
 * `+` if it was written and `-` if it was deleted. No part has white space in it.
 */
export function tupleChange(tenant: string | null, { writes, deletes }: TupleChanges): string {
  return [
    ...(tenant === null ? [] : [`tenant=${encodeURIComponent(tenant.toWellFormed())}`]),
    ...writes.map((tuple) => `+${formatTuple(tuple)}`),
    ...deletes.map((tuple) => `-${formatTuple(tuple)}`),
  ].join(' ')
}

/** Between the parts of an id, where policies put more into it than the subject. */
const SEPARATOR = '|'
/** Parts of an id that are looked at; there are as many runs of them as their number squared. */
const MAX_PARTS = 6

/**
 * Ids of objects and subjects that a {@link tupleChange} names: as they are, and every run of parts
 * between `|` in them. In their written form, each once.
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
 * The subject of an id out of {@link idsInChange}; undefined: it is nobody's. A part has the separator
 * escaped, too.
 */
export function subjectOfId(id: string): string | undefined {
  try {
    return id === WILDCARD ? undefined : decodeURIComponent(id)
  } catch {
    return undefined
  }
}
