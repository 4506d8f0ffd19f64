/** Cursors of lists of tuples: the last one that was told, encoded. */
import { base64url } from 'jose'
import { formatTuple, parseTuple, type RelationTuple } from './tuple.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const cursorOf = (tuple: RelationTuple): string =>
  base64url.encode(encoder.encode(formatTuple(tuple)))

/** Undefined: it is no cursor in the one spelling that {@link cursorOf} gives it. */
export function tupleOfCursor(cursor: string): RelationTuple | undefined {
  try {
    const tuple = parseTuple(decoder.decode(base64url.decode(cursor)))
    return tuple !== undefined && cursorOf(tuple) === cursor ? tuple : undefined
  } catch {
    return undefined
  }
}
