/** Code for text, numbers and enumerations. */
import { type Code, call, checked, list, literal } from '../code.ts'
import type { JsonObject } from '../located.ts'
import type { SchemaContext } from './context.ts'
import { declaredTypes, expressionOf, isType, type SchemaType, unitsOf } from './types.ts'

/** Formats of text that are checked, by the function that checks them. */
const TEXT_FORMATS: Readonly<Record<string, string>> = {
  byte: 'base64',
  date: 'date',
  'date-time': 'dateTime',
  email: 'email',
  hostname: 'hostname',
  ipv4: 'ipv4',
  ipv6: 'ipv6',
  time: 'time',
  uri: 'uri',
  'uri-reference': 'uriReference',
  uuid: 'uuid',
}
/** Formats that restrict no text. */
const FREE_TEXT: ReadonlySet<string> = new Set(['binary', 'password'])
/** Formats that restrict no number, because those of text do not apply to numbers. */
const FREE_NUMBERS: ReadonlySet<string> = new Set([
  'double',
  'float',
  ...FREE_TEXT,
  ...Object.keys(TEXT_FORMATS),
])
/** Formats of numbers that are whole. Numbers of JSON do not have the precision of int64. */
const WHOLE: ReadonlySet<unknown> = new Set(['int32', 'int64'])
const MAX_INT32 = 2_147_483_647
const MIN_INT32 = -MAX_INT32 - 1
const isInt32 = (value: unknown): boolean =>
  typeof value === 'number' && value >= MIN_INT32 && value <= MAX_INT32

/** Returns a keyword that is a number. Notes another value. */
function numberIn(
  { notes }: SchemaContext,
  schema: JsonObject,
  keyword: string,
  place: string,
): number | undefined {
  const value = schema[keyword]
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value
  notes.unmapped(place, `${keyword} is not a number, and is not checked`)
  return undefined
}

/** Returns code for a count: a whole number of at least 0. */
export function countIn(
  context: SchemaContext,
  schema: JsonObject,
  keyword: string,
  place: string,
): number | undefined {
  const value = numberIn(context, schema, keyword, place)
  return value === undefined ? undefined : Math.max(0, Math.ceil(value))
}

export function textCode(context: SchemaContext, schema: JsonObject, place: string): Code {
  const { notes, use } = context
  const checks: Code[] = []
  const min = countIn(context, schema, 'minLength', place) ?? 0
  const max = countIn(context, schema, 'maxLength', place)
  if (min === 1) checks.push('z.minLength(1)')
  else if (min > 1) checks.push(`${use('minChars')}(${min})`)
  if (max !== undefined) checks.push(`${use('maxChars')}(${max})`)
  const { format, pattern } = schema
  if (typeof format === 'string' && !FREE_TEXT.has(format)) {
    const name = Object.hasOwn(TEXT_FORMATS, format) ? TEXT_FORMATS[format] : undefined
    if (name !== undefined) checks.push(`${use(name)}()`)
    else notes.approximated(place, `format ${format} is not checked`)
  }
  if (typeof pattern === 'string') checks.push(...patternCheck(context, pattern, place, max))
  else if (pattern !== undefined) notes.unmapped(place, 'pattern is not text, and is not checked')
  return checked('z.string()', checks)
}

function patternCheck(
  context: SchemaContext,
  pattern: string,
  place: string,
  maxChars: number | undefined,
): readonly Code[] {
  const code = expressionCode(context, pattern, place, maxChars)
  return code === undefined ? [] : [`z.regex(${code})`]
}

/**
 * Returns a regular expression literal for text of at most `maxChars` characters. Notes a pattern that is
 * not checked as it is written, and one that could block the gateway.
 */
export function expressionCode(
  { document, notes }: SchemaContext,
  pattern: string,
  place: string,
  maxChars?: number,
): string | undefined {
  const expression = expressionOf(pattern)
  if (expression === undefined) {
    notes.unmapped(place, 'pattern is no ECMAScript regular expression, and is not checked')
    return undefined
  }
  const mistake = document.runTimes.mistakeIn(expression, unitsOf(maxChars))
  if (mistake !== undefined) {
    notes.unmapped(place, `pattern ${pattern} is not checked: it ${mistake}`)
    return undefined
  }
  if (!expression.unicode)
    notes.approximated(place, 'pattern is not valid with the flag u, and is checked without it')
  const source = expression.source.replace(
    /[\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `/${source}/${expression.flags}`
}

export function numberCode(
  context: SchemaContext,
  schema: JsonObject,
  place: string,
  isInteger: boolean,
): Code {
  const { notes, use } = context
  const { format } = schema
  const isWhole = isInteger || WHOLE.has(format)
  const checks: Code[] = []
  const bound = (keyword: string, inclusive: string, exclusive: string) => {
    const name = keyword === 'minimum' ? 'exclusiveMinimum' : 'exclusiveMaximum'
    const value = numberIn(context, schema, keyword, place)
    const isExclusive = schema[name] === true
    if (value !== undefined) checks.push(`z.${isExclusive ? exclusive : inclusive}(${value})`)
    if (typeof schema[name] === 'boolean') return
    const limit = numberIn(context, schema, name, place)
    if (limit !== undefined) checks.push(`z.${exclusive}(${limit})`)
  }
  bound('minimum', 'minimum', 'gt')
  bound('maximum', 'maximum', 'lt')
  if (format === 'int32' && !isInt32(schema.minimum)) checks.push(`z.minimum(${MIN_INT32})`)
  if (format === 'int32' && !isInt32(schema.maximum)) checks.push(`z.maximum(${MAX_INT32})`)
  if (typeof format === 'string' && !WHOLE.has(format) && !FREE_NUMBERS.has(format))
    notes.approximated(place, `format ${format} is not checked`)
  const step = numberIn(context, schema, 'multipleOf', place)
  if (step !== undefined && step > 0) checks.push(`z.multipleOf(${step})`)
  return checked(isWhole ? `${use('integer')}()` : 'z.number()', checks)
}

/** Returns code for `enum` and `const`. */
export function enumCode(
  context: SchemaContext,
  schema: JsonObject,
  values: readonly unknown[],
  place: string,
): Code {
  const types = declaredTypes(schema)
  const allowed = values.filter((value) => types?.some((type) => isType(value, type)) ?? true)
  if (allowed.length === 0 && values.length > 0 && types?.includes('string')) {
    context.notes.approximated(place, 'enum has no text, so its values are compared as text')
    return enumCode(context, { type: 'string' }, values.map(String), place)
  }
  if (allowed.length === 0) return 'z.never()'
  if (allowed.some((value) => typeof value === 'object' && value !== null))
    return call(context.use('anyValueOf'), list(allowed.map(literal)))
  const [only, ...others] = [...new Set(allowed)]
  if (others.length === 0) return call('z.literal', literal(only))
  return call('z.literal', list([only, ...others].map(literal)))
}

export const typeNames = (types: readonly SchemaType[]): readonly string[] => [
  ...new Set(types.map((type) => (type === 'integer' ? 'number' : type))),
]
