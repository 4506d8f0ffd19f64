/** Code for the request body of an operation. */
import { type Code, call } from './code.ts'
import { at, isObject, type Located } from './document.ts'
import type { SchemaContext } from './schema/context.ts'

export interface BodyOptions {
  /** Whether JSON is required where the document allows other media types as well. */
  readonly jsonOnly: boolean
}

export interface BodyCode {
  /** Undefined: not checked. */
  readonly body?: Code
  /** Whether requests have no body. */
  readonly isForbidden: boolean
}

/** What the gateway reads as JSON, see the stage `validate`. */
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?$/i
/** A range that contains JSON. */
const RANGE = /^(?:\*|application)\/\*$/i

export function bodyCode(
  context: SchemaContext,
  operation: Located,
  place: string,
  { jsonOnly }: BodyOptions,
): BodyCode {
  const { document, notes } = context
  const declared = at(operation, 'requestBody')
  if (declared.value === undefined) return { isForbidden: true }
  const body = document.resolve(declared)
  if (body === undefined || !isObject(body.value) || !isObject(body.value.content)) {
    notes.unmapped(place, 'the request body cannot be read, and is not checked')
    return { isForbidden: false }
  }
  const types = Object.keys(body.value.content)
  const json =
    types.find((type) => JSON_TYPE.test(type)) ?? types.find((type) => jsonOnly && RANGE.test(type))
  const others = types.filter((type) => type !== json && !JSON_TYPE.test(type))
  if (types.length === 0) return { isForbidden: false }
  if (json === undefined || (others.length > 0 && !jsonOnly)) {
    const remedy = json === undefined ? '' : '; --json-only requires JSON'
    notes.unmapped(place, `a body of type ${others.join(', ')} is not checked${remedy}`)
    return { isForbidden: false }
  }
  if (others.length > 0)
    notes.unmapped(place, `a body of type ${others.join(', ')} is refused (--json-only)`)
  const code = context.code(at(body, 'content', json, 'schema'), `${place} body`)
  return {
    isForbidden: false,
    body: body.value.required === true ? code : call('z.optional', code),
  }
}
