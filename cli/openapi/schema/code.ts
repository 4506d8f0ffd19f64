/** Converts a schema of OpenAPI to code that creates a zod schema. */
import { type Code, call, list, prefixed, written } from '../code.ts'
import { at, isObject, type JsonObject, type Located } from '../located.ts'
import { arrayCode, objectCode } from './containers.ts'
import type { SchemaContext } from './context.ts'
import { KEYWORDS, useKeywords, useTypedKeywords } from './keywords.ts'
import { enumCode, numberCode, textCode, typeNames } from './scalars.ts'
import {
  areDisjoint,
  declaredTypes,
  isExact,
  isPlainNullable,
  partsOf,
  possibleTypes,
  type SchemaType,
  UNCHECKED_KEYWORDS,
} from './types.ts'
import { unevaluatedCode } from './unevaluated.ts'

const NUMBER_FORMATS: ReadonlySet<unknown> = new Set(['int32', 'int64', 'float', 'double'])

/** Returns code that accepts what the schema accepts. What it accepts besides is noted. */
export function schemaCode(context: SchemaContext, schema: Located, place: string): Code {
  const { value } = schema
  const { document, notes, use } = context
  document.coverage.use(schema)
  if (value === undefined || value === true) return `${use('json')}()`
  if (value === false) return 'z.never()'
  if (!isObject(value)) {
    document.coverage.useAll(schema)
    notes.unmapped(place, 'is not a schema, so any value is accepted')
    return `${use('json')}()`
  }
  const located: Located<JsonObject> = { ...schema, value }
  const reference = typeof value.$ref === 'string' ? [context.reference(located, place)] : []
  const own = reference.length > 0 && document.is30 ? [] : ownParts(context, located, place)
  const parts = [...reference, ...own]
  const [first = `${use('json')}()`] = parts
  const code = parts.length > 1 ? call(use('allOf'), list(parts)) : first
  if (document.is30) useKeywords(context, located, ['nullable'])
  if (!document.is30 || value.nullable !== true) return code
  if (!isPlainNullable(value))
    notes.approximated(
      place,
      value.type === undefined
        ? 'null is accepted, although OpenAPI 3.0 defines nullable only beside type'
        : 'null is accepted, although another keyword beside nullable does not accept it',
    )
  return call('z.nullable', code)
}

/** Returns the codes of the keywords, all of which must accept a value. */
function ownParts(context: SchemaContext, schema: Located<JsonObject>, place: string): Code[] {
  const { value } = schema
  const { notes, use } = context
  const { coverage } = context.document
  const closing = unevaluatedCode(context, schema, place)
  for (const keyword of UNCHECKED_KEYWORDS)
    if (Object.hasOwn(value, keyword) && keyword !== closing?.keyword) {
      coverage.useAll(at(schema, keyword))
      notes.unmapped(place, `${keyword} is not checked`)
    }
  useKeywords(context, schema, ['type', 'enum', 'const', 'allOf', 'anyOf', 'oneOf', 'not'])
  useTypedKeywords(context, schema)
  const values = valuesOf(value)
  const parts: Code[] = []
  const base = typedCode(context, schema, place, values !== undefined)
  if (base !== undefined && !isImplied(context, schema, base)) parts.push(base)
  if (values !== undefined) parts.push(enumCode(context, value, values, place))
  for (const [index, part] of partsOf(schema, 'allOf').entries())
    parts.push(context.code(part, `${place}/allOf/${index}`))
  const any = partsOf(schema, 'anyOf')
  if (any.length > 0) parts.push(unionCode(codesOf(context, any, `${place}/anyOf`)))
  const one = partsOf(schema, 'oneOf')
  if (one.length > 0) parts.push(oneOfCode(context, schema, one, place))
  if (value.discriminator !== undefined && any.length + one.length === 0)
    notes.approximated(place, 'discriminator: the fields of subtypes are not checked')
  if (value.not !== undefined) {
    const inner = at(schema, 'not')
    if (isExact(context.document, inner))
      parts.push(call(use('not'), context.code(inner, `${place}/not`)))
    else {
      coverage.useAll(inner)
      notes.unmapped(place, 'not is not checked, because its schema is approximated')
    }
  }
  if (value.if !== undefined && !context.document.is30)
    parts.push(...conditionalParts(context, schema, place))
  if (closing?.code !== undefined) parts.push(closing.code)
  return parts
}

/** Reports whether `type: object` adds nothing to the other schemas of `allOf`. */
function isImplied({ document }: SchemaContext, schema: Located<JsonObject>, base: Code): boolean {
  if (written(base) !== 'z.looseObject({})') return false
  return partsOf(schema, 'allOf').some((part) => {
    const types = possibleTypes(document, part)
    return types?.size === 1 && types.has('object')
  })
}

function valuesOf({ enum: values, const: only }: JsonObject): readonly unknown[] | undefined {
  if (only !== undefined) return [only]
  return Array.isArray(values) ? values : undefined
}

/** Returns code for `type` and the keywords of types. Undefined if they accept every value. */
function typedCode(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
  isEnumerated: boolean,
): Code | undefined {
  const { value } = schema
  const { notes, use } = context
  const types = declaredTypes(value)
  if (value.type !== undefined && types === undefined)
    notes.unmapped(place, `type ${JSON.stringify(value.type)} does not exist, and is not checked`)
  else if (Array.isArray(value.type) && types?.length !== value.type.length)
    notes.unmapped(place, `the types ${JSON.stringify(value.type)} do not all exist`)
  const used = KEYWORDS.filter(([, keywords]) =>
    keywords.some((keyword) => Object.hasOwn(value, keyword)),
  ).map(([type]) => type)
  if (types === undefined && value.format !== undefined && !isEnumerated)
    used.push(NUMBER_FORMATS.has(value.format) ? 'number' : 'string')
  // The enumeration decides alone.
  if (isEnumerated && used.length === 0) return undefined
  if (types !== undefined) {
    const isOther = types.includes('number') ? (type: SchemaType) => type !== 'integer' : () => true
    const codes = types.filter(isOther).map((type) => codeOfType(context, schema, place, type))
    return unionCode(codes)
  }
  const restricted = [...new Set(used)]
  if (restricted.length === 0) return undefined
  const others = call(use('otherThan'), ...typeNames(restricted).map((name) => `'${name}'`))
  return unionCode([...restricted.map((type) => codeOfType(context, schema, place, type)), others])
}

function codeOfType(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
  type: SchemaType,
): Code {
  switch (type) {
    case 'string':
      return textCode(context, schema.value, place)
    case 'number':
    case 'integer':
      return numberCode(context, schema.value, place, type === 'integer')
    case 'boolean':
      return 'z.boolean()'
    case 'null':
      return 'z.null()'
    case 'array':
      return arrayCode(context, schema, place)
    case 'object':
      return objectCode(context, schema, place)
  }
}

const codesOf = (context: SchemaContext, parts: readonly Located[], place: string) =>
  parts.map((part, index) => context.code(part, `${place}/${index}`))

function unionCode(codes: readonly Code[]): Code {
  const [first = 'z.never()', second, ...others] = codes
  if (second === undefined) return first
  if (others.length === 0 && second === 'z.null()') return call('z.nullable', first)
  if (others.length === 0 && first === 'z.null()') return call('z.nullable', second)
  return call('z.union', list(codes))
}

function oneOfCode(
  context: SchemaContext,
  schema: Located<JsonObject>,
  parts: readonly Located[],
  place: string,
): Code {
  const { document, notes } = context
  const codes = codesOf(context, parts, `${place}/oneOf`)
  if (parts.length === 1 || areDisjoint(document, parts)) return unionCode(codes)
  const reason =
    schema.value.discriminator !== undefined
      ? 'the discriminator selects one of them'
      : parts.every((part) => isExact(document, part))
        ? undefined
        : 'they are approximated'
  if (reason === undefined) return prefixed('', call(context.use('oneOf'), list(codes)))
  notes.approximated(
    place,
    `oneOf: a value that matches several alternatives is accepted, because ${reason}`,
  )
  return unionCode(codes)
}

/** `then` applies to values that match `if`, `else` to the others. */
function conditionalParts(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
): readonly Code[] {
  const { document, notes, use } = context
  const condition = at(schema, 'if')
  useKeywords(context, schema, ['if', 'then', 'else'])
  const { then: positive, else: negative } = schema.value
  if (positive === undefined && negative === undefined) {
    document.coverage.useAll(condition)
    notes.ignored('if', 'has no effect without then or else')
    return []
  }
  if (!isExact(document, condition)) {
    for (const name of ['if', 'then', 'else']) document.coverage.useAll(at(schema, name))
    notes.unmapped(place, 'if is not checked, because its schema is approximated')
    return []
  }
  const code = () => context.code(condition, `${place}/if`)
  return [
    ...(positive === undefined
      ? []
      : [unionCode([call(use('not'), code()), context.code(at(schema, 'then'), `${place}/then`)])]),
    ...(negative === undefined
      ? []
      : [unionCode([code(), context.code(at(schema, 'else'), `${place}/else`)])]),
  ]
}
