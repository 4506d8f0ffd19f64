/** Relation tuples, and how objects and subjects are written: `order:1#viewer@team:eng#member`. */

/** An object: `type:id`. */
export interface ObjectReference {
  readonly type: string
  /** As it is written: see {@link escapeId}. */
  readonly id: string
}

/** `type:id`, `type:id#relation` (all who have it: a userset), or `type:*` (all of the type). */
export interface SubjectReference extends ObjectReference {
  readonly relation: string | undefined
}

/** `object` has `relation` to `subject` (Zanzibar section 2.1). Each in its written form. */
export interface RelationTuple {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** All of a type: in the place of an id, of a subject only. */
export const WILDCARD = '*'

/** Names of types and relations. */
export const RELATION_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/

/** In UTF-16 code units, escaped. */
const MAX_ID_LENGTH = 512
/** Separators, the wildcard, the escape itself, white space, and what cannot be seen. */
const RESERVED = /[%:#*\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const RESERVED_ESCAPE = /%[0-9A-F]{2}/g

/**
 * Any text as the id of an object or a subject: what is reserved is percent-encoded, as UTF-8 and in
 * upper case, and nothing else, so that different texts give different ids. Undefined where there
 * can be no such id: the text is empty, not well-formed Unicode, or longer than 512 once escaped.
 */
export function escapeId(text: string): string | undefined {
  if (text === '' || text.length > MAX_ID_LENGTH || !text.isWellFormed()) return undefined
  const id = text.replace(RESERVED, percentEncoded)
  return id.length > MAX_ID_LENGTH ? undefined : id
}

function percentEncoded(character: string): string {
  return character === WILDCARD ? '%2A' : encodeURIComponent(character)
}

/** Whether a text is an id as {@link escapeId} writes it; every other spelling is none. */
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

/** Undefined: it is not written as an object is. */
export function parseObject(text: string): ObjectReference | undefined {
  const colon = text.indexOf(':')
  const type = text.slice(0, Math.max(colon, 0))
  const id = text.slice(colon + 1)
  return RELATION_NAME.test(type) && isId(id) ? { type, id } : undefined
}

/** Undefined: it is not written as a subject is. */
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

/** `object#relation@subject`. Takes its parts as they are. */
export const formatTuple = ({ object, relation, subject }: RelationTuple): string =>
  `${object}#${relation}@${subject}`

/** Undefined: it is not written as a tuple is. An `@` may stand in ids, for a relation has none. */
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

/** Whether all parts are written as they should be. Does not know any model. */
export const isTuple = ({ object, relation, subject }: RelationTuple): boolean =>
  parseObject(object) !== undefined &&
  RELATION_NAME.test(relation) &&
  parseSubject(subject) !== undefined
