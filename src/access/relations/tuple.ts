/** Relation tuples and their written form: `order:1#viewer@team:eng#member`. */
import { base64url } from 'jose'

/** `type:id`. */
export interface ObjectReference {
  readonly type: string
  /** Escaped as by {@link escapeId}. */
  readonly id: string
}

/** `type:id`, `type:id#relation` (all subjects with the relation), or `type:*` (all of the type). */
export interface SubjectReference extends ObjectReference {
  readonly relation: string | undefined
}

/** A tuple: `subject` has `relation` to `object` (Zanzibar section 2.1). */
export interface RelationTuple {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** The wildcard: all subjects of a type. It replaces the id, in subjects only. */
export const WILDCARD = '*'

/** Names of types and of relations. */
export const RELATION_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/

/** In UTF-16 code units of the escaped id. */
const MAX_ID_LENGTH = 512
/** The separators, the wildcard, the escape character, white space and invisible characters. */
const RESERVED = /[%:#*\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const RESERVED_ESCAPE = /%[0-9A-F]{2}/g

/**
 * Turns a text into an id. Percent-encodes only the reserved characters, as UTF-8 in upper case, so
 * that different texts give different ids. Returns undefined if the text is empty, is not
 * well-formed Unicode, or is longer than 512 code units once escaped.
 */
export function escapeId(text: string): string | undefined {
  if (text === '' || text.length > MAX_ID_LENGTH || !text.isWellFormed()) return undefined
  const id = text.replace(RESERVED, percentEncoded)
  return id.length > MAX_ID_LENGTH ? undefined : id
}

function percentEncoded(character: string): string {
  return character === WILDCARD ? '%2A' : encodeURIComponent(character)
}

/** Reports whether a text is an id as {@link escapeId} writes it. No other spelling is valid. */
export function isId(text: string): boolean {
  const raw = text.includes('%') ? unescaped(text) : text
  return raw !== undefined && escapeId(raw) === text
}

function unescaped(text: string): string | undefined {
  try {
    return text.replace(RESERVED_ESCAPE, '').includes('%') ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns undefined if the syntax is wrong. */
export function parseObject(text: string): ObjectReference | undefined {
  const colon = text.indexOf(':')
  const type = text.slice(0, Math.max(colon, 0))
  const id = text.slice(colon + 1)
  return RELATION_NAME.test(type) && isId(id) ? { type, id } : undefined
}

/** Returns undefined if the syntax is wrong. */
export function parseSubject(text: string): SubjectReference | undefined {
  const hash = text.indexOf('#')
  const relation = hash === -1 ? undefined : text.slice(hash + 1)
  if (relation !== undefined && !RELATION_NAME.test(relation)) return undefined
  const name = hash === -1 ? text : text.slice(0, hash)
  if (relation === undefined && name.endsWith(`:${WILDCARD}`)) {
    const type = name.slice(0, -2)
    return RELATION_NAME.test(type) ? { type, id: WILDCARD, relation } : undefined
  }
  const object = parseObject(name)
  return object && { ...object, relation }
}

/** Formats a tuple as `object#relation@subject`. Does NOT check the parts. */
export const formatTuple = ({ object, relation, subject }: RelationTuple): string =>
  `${object}#${relation}@${subject}`

/** Returns undefined if the syntax is wrong. The first `@` after `#` ends the relation. */
export function parseTuple(text: string): RelationTuple | undefined {
  const hash = text.indexOf('#')
  const at = text.indexOf('@', hash)
  if (hash === -1 || at === -1) return undefined
  const tuple = {
    object: text.slice(0, hash),
    relation: text.slice(hash + 1, at),
    subject: text.slice(at + 1),
  }
  return isTuple(tuple) ? tuple : undefined
}

/** Reports whether all parts have the right syntax. Does NOT check a model. */
export const isTuple = ({ object, relation, subject }: RelationTuple): boolean =>
  parseObject(object) !== undefined &&
  RELATION_NAME.test(relation) &&
  parseSubject(subject) !== undefined

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns the cursor of a tuple list for the last tuple of a page. */
export const cursorOf = (tuple: RelationTuple): string => base64url.encode(formatTuple(tuple))

/** Returns the tuple in a cursor; undefined if {@link cursorOf} would spell it differently. */
export function tupleOfCursor(cursor: string): RelationTuple | undefined {
  try {
    const tuple = parseTuple(decoder.decode(base64url.decode(cursor)))
    return tuple !== undefined && cursorOf(tuple) === cursor ? tuple : undefined
  } catch {
    return undefined
  }
}
