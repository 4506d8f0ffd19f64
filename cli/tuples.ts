/** Parses relation tuples from lines of text, and groups them into batches for the gateway. */
import { objectIn } from './json.ts'

export interface Tuple {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** A tuple of a file. */
export interface NumberedTuple {
  /** Line number, from 1. */
  readonly line: number
  readonly tuple: Tuple
}

/** Limits of one call: 100 tuples, and 24 KB with the tenant and one extra byte for each tuple. */
const MAX_TUPLES = 100
/** Maximum size of the tuples as JSON: 24 KB without the longest tenant. */
const MAX_BYTES = 22_000
const COMMENT = '#'
/**
 * The character that a decoder inserts for bytes that are not UTF-8. Different invalid names would
 * become the same name.
 */
const REPLACEMENT = '\ufffd'
/** Quotation marks around three names and three values. */
const QUOTES = 12
const ESCAPED = /\\./g

/**
 * Parses `object#relation@subject`, or returns undefined. Does NOT check the parts: the gateway
 * does.
 */
export function tupleIn(text: string): Tuple | undefined {
  const [, object, relation, subject] = /^([^#\s]+)#([^@\s]+)@(\S+)$/.exec(text) ?? []
  if (object === undefined || relation === undefined || subject === undefined) return undefined
  return { object, relation, subject }
}

export const textOfTuple = ({ object, relation, subject }: Tuple): string =>
  `${object}#${relation}@${subject}`

/**
 * Parses a line: text, or JSON with `object`, `relation` and `subject` (or `user`, as in OpenFGA),
 * each exactly once. Returns null for a blank line or comment. Returns undefined for an invalid
 * line, or one that is not UTF-8.
 */
export function tupleOfLine(line: string): Tuple | null | undefined {
  const text = line.trim()
  if (text === '' || text.startsWith(COMMENT)) return null
  if (text.includes(REPLACEMENT)) return undefined
  return text.startsWith('{') ? tupleOfJson(text) : tupleIn(text)
}

function tupleOfJson(text: string): Tuple | undefined {
  const members = objectIn(text) as Record<string, unknown> | undefined
  if (members === undefined) return undefined
  const { object, relation, user, subject = user, ...others } = members
  const isWhole = [object, relation, subject].every((part) => typeof part === 'string')
  if (user !== undefined && members.subject !== undefined) return undefined
  // Parsers differ in which value they use for a duplicate member name.
  if (text.replace(ESCAPED, '').split('"').length !== QUOTES + 1) return undefined
  // Other members, such as a condition, would be lost.
  if (!isWhole || Object.keys(others).length > 0) return undefined
  return { object, relation, subject } as Tuple
}

export function createTupleBatches() {
  let batch = new Map<string, NumberedTuple>()
  let bytes = 0
  return {
    /**
     * Adds a tuple, unless the current batch contains it already. Returns the previous batch if it is
     * full.
     */
    add(numbered: NumberedTuple): readonly NumberedTuple[] | undefined {
      const text = textOfTuple(numbered.tuple)
      if (batch.has(text)) return undefined
      const size = Buffer.byteLength(JSON.stringify(text))
      const isFull = batch.size === MAX_TUPLES || (batch.size > 0 && bytes + size > MAX_BYTES)
      const full = isFull ? [...batch.values()] : undefined
      if (isFull) {
        batch = new Map()
        bytes = 0
      }
      batch.set(text, numbered)
      bytes += size
      return full
    },
    /** Returns the last, incomplete batch. */
    rest: (): readonly NumberedTuple[] => [...batch.values()],
  }
}
