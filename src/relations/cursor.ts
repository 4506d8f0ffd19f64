/** Cursors of tuple lists: the last tuple of the previous page, encoded. */
import { base64url } from 'jose'
import { formatTuple, parseTuple, type RelationTuple } from './tuple.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const cursorOf = (tuple: RelationTuple): string =>
  base64url.encode(encoder.encode(formatTuple(tuple)))

/**
 * Returns the tuple in a cursor; undefined if the cursor is not spelled exactly as {@link cursorOf}
 * spells it.
 */
export function tupleOfCursor(cursor: string): RelationTuple | undefined {
  try {
    const tuple = parseTuple(decoder.decode(base64url.decode(cursor)))
    return tuple !== undefined && cursorOf(tuple) === cursor ? tuple : undefined
  } catch {
    return undefined
  }
}
