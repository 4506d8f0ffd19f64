/** Code for the request body of an operation. */
import { type Code, call } from './code.ts'
import { at, isObject, type Located } from './located.ts'
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
/** JSON for the gateway too (RFC 6839 section 3.1), and for a document a type with a schema of its own. */
const SUFFIXED = /^application\/.+\+json[ \t]*(?:;|$)/i
/** A range that contains JSON. */
const RANGE = /^(?:\*|application)\/\*$/i

export function bodyCode(
  context: SchemaContext,
  operation: Located,
  place: string,
  { jsonOnly }: BodyOptions,
): BodyCode {
  const { document, notes } = context
  const { coverage } = document
  const declared = at(operation, 'requestBody')
  if (declared.value === undefined) return { isForbidden: true }
  const body = document.follow(declared)
  if (body === undefined || !isObject(body.value) || !isObject(body.value.content)) {
    coverage.useAll(declared)
    notes.unmapped(place, 'the request body cannot be read, and is not checked')
    return { isForbidden: false }
  }
  const content = at(body, 'content')
  coverage.use(content)
  if (typeof body.value.required === 'boolean') coverage.use(at(body, 'required'))
  const types = Object.keys(body.value.content)
  const json =
    types.find((type) => JSON_TYPE.test(type)) ??
    types.find(
      (type) => (types.length === 1 && SUFFIXED.test(type)) || (jsonOnly && RANGE.test(type)),
    )
  const others = types.filter((type) => type !== json)
  for (const type of others) coverage.useAll(at(content, type))
  if (types.length === 0) return { isForbidden: false }
  const isAlike = others.every((type) => JSON_TYPE.test(type))
  if (json === undefined || (!isAlike && !jsonOnly)) {
    const remedy = json === undefined ? '' : '; --json-only requires JSON'
    if (json !== undefined) coverage.useAll(at(content, json))
    notes.unmapped(place, `a body of type ${others.join(', ')} is not checked${remedy}`)
    return { isForbidden: false }
  }
  coverage.use(at(content, json))
  if (others.length > 0)
    notes.unmapped(
      place,
      isAlike
        ? `the schema of ${others.join(', ')} is not used, but that of ${json}`
        : `a body of type ${others.join(', ')} is refused, or checked as ${json} if it is JSON (--json-only)`,
    )
  const code = context.code(at(content, json, 'schema'), `${place} body`)
  return {
    isForbidden: false,
    body: body.value.required === true ? code : call('z.optional', code),
  }
}
