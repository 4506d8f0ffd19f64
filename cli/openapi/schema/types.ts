/** The types of the values that a schema accepts, and whether its code accepts only these values. */
import type { Document } from '../document.ts'
import { at, isObject, type JsonObject, type Located } from '../located.ts'

export type SchemaType = 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object'

const TYPES: ReadonlySet<unknown> = new Set<SchemaType>([
  'string',
  'number',
  'integer',
  'boolean',
  'null',
  'array',
  'object',
])

/** Keywords that are not checked. */
export const UNCHECKED_KEYWORDS = [
  'unevaluatedProperties',
  'unevaluatedItems',
  'dependentSchemas',
  'dependencies',
  'contains',
  '$dynamicRef',
  '$recursiveRef',
] as const

/** Members of a schema whose values are not schemas. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples'])

/** Returns the value of `type` as a list. Undefined for any type; unknown types are left out. */
export function declaredTypes({ type }: JsonObject): readonly SchemaType[] | undefined {
  if (type === undefined) return undefined
  const types = (Array.isArray(type) ? type : [type]).filter((name) => TYPES.has(name))
  return types.length === 0 ? undefined : (types as SchemaType[])
}

export const isType = (value: unknown, type: SchemaType): boolean => {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

function typeOfValue(value: unknown): SchemaType {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : (typeof value as SchemaType)
}

/** Returns the types that a schema accepts. Undefined if every type, or if it is not known. */
export function possibleTypes(
  document: Document,
  schema: Located,
  seen: ReadonlySet<unknown> = new Set(),
): ReadonlySet<SchemaType> | undefined {
  const { value } = schema
  if (!isObject(value) || seen.has(value)) return undefined
  const within = new Set([...seen, value])
  const target = value.$ref === undefined ? undefined : document.resolve(schema)
  if (value.$ref !== undefined && document.is30)
    return target && possibleTypes(document, target, within)
  const sets: (ReadonlySet<SchemaType> | undefined)[] = [
    target && possibleTypes(document, target, within),
    asSet(declaredTypes(value)),
    Array.isArray(value.enum) ? new Set(value.enum.map(typeOfValue)) : undefined,
    value.const === undefined ? undefined : new Set([typeOfValue(value.const)]),
    ...partsOf(schema, 'allOf').map((part) => possibleTypes(document, part, within)),
    ...(['anyOf', 'oneOf'] as const).map((keyword) => {
      const parts = partsOf(schema, keyword)
      const types = parts.map((part) => possibleTypes(document, part, within))
      if (parts.length === 0 || types.includes(undefined)) return undefined
      return new Set(types.flatMap((part) => [...(part ?? [])]))
    }),
  ]
  const found = sets
    .filter((set) => set !== undefined)
    .reduce<ReadonlySet<SchemaType> | undefined>(
      (left, right) => (left === undefined ? right : intersection(left, right)),
      undefined,
    )
  return found && document.is30 && value.nullable === true ? new Set([...found, 'null']) : found
}

const asSet = (types: readonly SchemaType[] | undefined) => types && new Set(types)

/** An integer is a number. */
const intersection = (left: ReadonlySet<SchemaType>, right: ReadonlySet<SchemaType>) =>
  new Set(
    [...left, ...right].filter(
      (type) =>
        (left.has(type) || (type === 'integer' && left.has('number'))) &&
        (right.has(type) || (type === 'integer' && right.has('number'))),
    ),
  )

export function partsOf(schema: Located, keyword: string): readonly Located[] {
  const parts = at(schema, keyword)
  return Array.isArray(parts.value) ? parts.value.map((_, index) => at(parts, index)) : []
}

/** Reports whether no value can match two of these schemas. False if it is not known. */
export function areDisjoint(document: Document, schemas: readonly Located[]): boolean {
  const types = schemas.map((schema) => possibleTypes(document, schema))
  const seen = new Set<SchemaType>()
  const haveOwnTypes = types.every((set) => {
    if (set === undefined) return false
    const widened = [...set].map((type) => (type === 'integer' ? 'number' : type))
    if (widened.some((type) => seen.has(type))) return false
    for (const type of widened) seen.add(type)
    return true
  })
  if (haveOwnTypes) return true
  const targets = schemas.map((schema) => document.resolve(schema))
  const [first] = targets
  const names =
    isObject(first?.value) && isObject(first.value.properties) ? first.value.properties : {}
  return Object.keys(names).some((name) => {
    const tags = targets.map((target) => tagsOf(document, target, name))
    const all = tags.flatMap((values) => values ?? [])
    return !tags.includes(undefined) && new Set(all).size === all.length
  })
}

/** Returns the values of a required property with a fixed list of text values. */
function tagsOf(
  document: Document,
  schema: Located | undefined,
  name: string,
): readonly string[] | undefined {
  if (schema === undefined || !isObject(schema.value)) return undefined
  if (!Array.isArray(schema.value.required) || !schema.value.required.includes(name))
    return undefined
  if (!declaredTypes(schema.value)?.every((type) => type === 'object')) return undefined
  const property = document.resolve(at(schema, 'properties', name))?.value
  if (!isObject(property) || property.nullable === true || property.readOnly === true)
    return undefined
  const values = Array.isArray(property.enum) ? property.enum : [property.const]
  return values.every((value) => typeof value === 'string') ? values : undefined
}

/** Reports whether the code of a schema accepts only what the schema accepts. */
export function isExact(
  document: Document,
  schema: Located,
  seen: Set<unknown> = new Set(),
): boolean {
  const { value } = schema
  if (typeof value !== 'object' || value === null || seen.has(value)) return true
  seen.add(value)
  if (isObject(value)) {
    if (UNCHECKED_KEYWORDS.some((keyword) => Object.hasOwn(value, keyword))) return false
    if (
      value.readOnly === true ||
      (document.is30 && value.nullable === true && !isPlainNullable(value))
    )
      return false
    if (typeof value.pattern === 'string' && !isUsed(document, value.pattern, value.maxLength))
      return false
    if (value.discriminator !== undefined) return false
    if (typeof value.$ref === 'string') {
      const target = document.resolve(schema)
      if (target === undefined || !isExact(document, target, seen)) return false
    }
  }
  if (isObject(value) && isObject(value.patternProperties))
    if (!Object.keys(value.patternProperties).every((pattern) => isUsed(document, pattern)))
      return false
  return Object.keys(value).every(
    (name) => DATA.has(name) || isExact(document, at(schema, name), seen),
  )
}

/**
 * Reports whether OpenAPI 3.0 says that null is accepted: beside `type`, unless another keyword refuses
 * it, such as an `enum` without null.
 */
export const isPlainNullable = (schema: JsonObject): boolean =>
  schema.type !== undefined &&
  (!Array.isArray(schema.enum) || schema.enum.includes(null)) &&
  !['allOf', 'anyOf', 'oneOf', '$ref'].some((keyword) => Object.hasOwn(schema, keyword))

/** Reports whether a pattern is checked as it is written. */
function isUsed({ runTimes }: Document, pattern: string, maxLength?: unknown): boolean {
  const expression = expressionOf(pattern)
  if (expression?.unicode !== true) return false
  const maxChars = typeof maxLength === 'number' ? maxLength : undefined
  return runTimes.mistakeIn(expression, unitsOf(maxChars)) === undefined
}

/** A character has one or two UTF-16 code units. */
export const unitsOf = (chars: number | undefined): number | undefined =>
  chars === undefined ? undefined : 2 * chars

/** Returns a regular expression with the flag `u`, or without it if it is not valid with it. */
export function expressionOf(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags)
    } catch {
      // Tries the next flags.
    }
  }
  return undefined
}
