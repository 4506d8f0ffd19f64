/** Templates of objects and subjects, such as `order:{params.id}`. */
import { escapeId, isId, RELATION_NAME, WILDCARD } from './tuple.ts'

/** A value that a template may refer to: a path parameter or an attribute of the caller. */
export type Placeholder =
  | { readonly kind: 'param'; readonly name: string }
  | { readonly kind: 'subject' | 'client' | 'tenant' | 'issuer' }

export type ValueOf = (placeholder: Placeholder) => string | undefined

export interface Template {
  readonly type: string
  /** The kind of the subject, as `kindOf` returns it: equal to `type` for one object. */
  readonly kind: string
  readonly placeholders: readonly Placeholder[]
  /** Returns the object or subject; undefined if a value is missing or cannot be an id. */
  fill(lookUp: ValueOf): string | undefined
}

const WORDS = ['subject', 'client', 'tenant', 'issuer'] as const
const PARAM = /^params\.(\w+)$/
const PART = /\{([^{}]*)\}/
/** ASCII punctuation, which can separate two values; except `%`, which starts an escape. */
const SEPARATOR = /[!-$&-/:-@[-`{-~]/g

/**
 * Parses a template. Returns a sentence that describes the mistake if the template is invalid.
 *
 * Different values give different ids. With one placeholder, its value is escaped as every id is.
 * With several placeholders, `%` and the separators are percent-encoded in each value first, so
 * that no value can extend into the next one. In `{issuer}|{subject}` the subject `a|b` becomes
 * `a%257Cb`, and `alice` stays unchanged.
 */
export function parseTemplate(text: string): Template | string {
  const colon = text.indexOf(':')
  const type = text.slice(0, Math.max(colon, 0))
  if (!RELATION_NAME.test(type)) return 'must be written as type:id, such as order:{params.id}'
  const hash = text.lastIndexOf('#')
  const relation = hash === -1 ? undefined : text.slice(hash + 1)
  if (relation !== undefined && !RELATION_NAME.test(relation))
    return `invalid relation name ${relation}`
  const id = text.slice(colon + 1, hash === -1 ? undefined : hash)
  if (id === WILDCARD && relation === undefined)
    return { type, kind: text, placeholders: [], fill: () => text }

  // Literals are at even indexes, placeholders at odd ones.
  const parts = id.split(PART)
  const literals = parts.filter((_, index) => index % 2 === 0)
  const names = parts.filter((_, index) => index % 2 === 1)
  const placeholders: Placeholder[] = []
  for (const name of names) {
    const placeholder = parsePlaceholder(name)
    if (placeholder === undefined) return `unknown placeholder {${name}}`
    placeholders.push(placeholder)
  }
  const between = literals.slice(1, -1)
  if (literals.some((literal) => /[{}]/.test(literal) || (literal !== '' && !isId(literal))))
    return 'has a character that ids cannot contain, outside of placeholders'
  // Decodes the literals: `%3A` in a literal separates values as `:` does.
  const separators = between.map((literal) => decodeURIComponent(literal).match(SEPARATOR))
  if (separators.includes(null)) return 'requires a punctuation mark between two placeholders'
  if (id === '') return 'requires an id'

  const ending = relation === undefined ? '' : `#${relation}`
  const reserved = new Set(separators.flatMap((some) => some ?? []))
  const [head = '', ...tails] = literals
  return {
    type,
    kind: type + ending,
    placeholders,
    fill(lookUp) {
      let filled = head
      for (const [index, placeholder] of placeholders.entries()) {
        const value = lookUp(placeholder)
        const part = value === undefined ? undefined : escapeId(withoutSeparators(value, reserved))
        if (part === undefined) return undefined
        filled += part + tails[index]
      }
      return isId(filled) ? `${type}:${filled}${ending}` : undefined
    },
  }
}

function parsePlaceholder(text: string): Placeholder | undefined {
  const [, name] = PARAM.exec(text) ?? []
  if (name !== undefined) return { kind: 'param', name }
  const word = WORDS.find((each) => each === text)
  return word && { kind: word }
}

/** Encodes the reserved characters of a value. Different values stay different. */
function withoutSeparators(value: string, reserved: ReadonlySet<string>): string {
  if (reserved.size === 0) return value
  return value
    .replace(/%/g, '%25')
    .replace(SEPARATOR, (character) =>
      reserved.has(character)
        ? `%${character.charCodeAt(0).toString(16).toUpperCase()}`
        : character,
    )
}
