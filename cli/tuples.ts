/** Relation tuples as people write them, one to a line, and in calls that the gateway takes. */

export interface Tuple {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** A tuple of a file. */
export interface NumberedTuple {
  /** From 1. */
  readonly line: number
  readonly tuple: Tuple
}

/** What one call takes: 100 tuples, and 24 KB with the tenant and a sign before each. */
const MAX_TUPLES = 100
/** As JSON: what is left then beside the longest tenant. */
const MAX_BYTES = 22_000
const COMMENT = '#'
/** What is no UTF-8 is read as: it would stand for anybody. */
const REPLACEMENT = '\ufffd'
/** Around three names and three texts. */
const QUOTES = 12
const ESCAPED = /\\./g

/** Undefined: it is not `object#relation@subject`. Whether its parts are good is for the gateway to say. */
export function tupleIn(text: string): Tuple | undefined {
  const [, object, relation, subject] = /^([^#\s]+)#([^@\s]+)@(\S+)$/.exec(text) ?? []
  if (object === undefined || relation === undefined || subject === undefined) return undefined
  return { object, relation, subject }
}

export const textOfTuple = ({ object, relation, subject }: Tuple): string =>
  `${object}#${relation}@${subject}`

/**
 * The tuple in a line: as text, or as JSON with `object`, `relation` and `subject`, or `user` as OpenFGA
 * has it, each once. Null: the line is blank or a comment. Undefined: it is nothing of all that, or is
 * not UTF-8.
 */
export function tupleOfLine(line: string): Tuple | null | undefined {
  const text = line.trim()
  if (text === '' || text.startsWith(COMMENT)) return null
  if (text.includes(REPLACEMENT)) return undefined
  return text.startsWith('{') ? tupleOfJson(text) : tupleIn(text)
}

function tupleOfJson(text: string): Tuple | undefined {
  let members: Record<string, unknown>
  try {
    members = JSON.parse(text)
  } catch {
    return undefined
  }
  const { object, relation, user, subject = user, ...others } = members
  const isWhole = [object, relation, subject].every((part) => typeof part === 'string')
  if (user !== undefined && members.subject !== undefined) return undefined
  // Of a name that stands there twice, readers differ in which one they take.
  if (text.replace(ESCAPED, '').split('"').length !== QUOTES + 1) return undefined
  // A condition, for one, would be lost.
  if (!isWhole || Object.keys(others).length > 0) return undefined
  return { object, relation, subject } as Tuple
}

/** Takes tuples one by one and gives them back in batches. */
export interface TupleBatches {
  /** A batch that is full without this one. One that is in it already is passed over. */
  add(numbered: NumberedTuple): readonly NumberedTuple[] | undefined
  /** What is left. */
  rest(): readonly NumberedTuple[]
}

export function createTupleBatches(): TupleBatches {
  let batch = new Map<string, NumberedTuple>()
  let bytes = 0
  return {
    add(numbered) {
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
    rest: () => [...batch.values()],
  }
}
