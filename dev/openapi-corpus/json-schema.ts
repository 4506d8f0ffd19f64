/** Prepares the schemas of a document for a validator of JSON Schema. */
import { isObject, type JsonObject } from '../../cli/openapi/located.ts'

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** Writes a path as JSON Pointer. */
export const placeOf = (path: readonly string[]): string =>
  path.map((name) => `/${escaped(name)}`).join('')

/** Writes a path as JSON Pointer for a URL. */
export const pointerOf = (path: readonly string[]): string =>
  path.map((name) => `/${encodeURIComponent(escaped(name))}`).join('')

/** Follows references. Returns the path of the target. */
export function targetOf(
  document: JsonObject,
  path: readonly string[],
): readonly string[] | undefined {
  let value: unknown = document
  let at: string[] = []
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as JsonObject)[name]
    at.push(name)
    for (let left = 10; isObject(value) && typeof value.$ref === 'string' && left > 0; left -= 1) {
      at = namesIn(value.$ref)
      value = at.reduce<unknown>(
        (inner, part) => (inner as JsonObject | undefined)?.[part],
        document,
      )
    }
  }
  return value === undefined ? undefined : at
}

export const namesIn = (reference: string): string[] =>
  reference
    .replace(/^#\/?/, '')
    .split('/')
    .map((name) => decoded(name).replaceAll('~1', '/').replaceAll('~0', '~'))

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Maps of names to schemas, whose names are not keywords. */
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'schemas', '$defs'])
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default'])
const IGNORED: ReadonlySet<string> = new Set([
  'nullable',
  'discriminator',
  '$id',
  'id',
  '$schema',
  'example',
  'examples',
])

/**
 * Returns the document with the keywords of OpenAPI in those of JSON Schema: `nullable`, boolean
 * `exclusiveMinimum`, members next to `$ref`, and properties that only responses have.
 */
export function forAjv(document: JsonObject, is30: boolean): unknown {
  function isReadOnly(property: unknown): boolean {
    if (!isObject(property)) return false
    if (property.readOnly === true) return true
    if (typeof property.$ref !== 'string') return false
    const target = targetOf(document, namesIn(property.$ref))
    const value = target?.reduce<unknown>(
      (inner, name) => (inner as JsonObject | undefined)?.[name],
      document,
    )
    return isObject(value) && value.readOnly === true
  }

  function converted(value: unknown, isMap: boolean): unknown {
    if (Array.isArray(value)) return value.map((item) => converted(item, false))
    if (!isObject(value)) return value
    if (isMap)
      return Object.fromEntries(
        Object.entries(value).map(([name, schema]) => [name, converted(schema, false)]),
      )
    if (is30 && typeof value.$ref === 'string')
      return value.nullable === true
        ? { anyOf: [{ $ref: value.$ref }, { type: 'null' }] }
        : { $ref: value.$ref }
    const schema: Record<string, unknown> = {}
    for (const [name, member] of Object.entries(value)) {
      // Of OpenAPI, or of schemas that have their own identifiers; examples may have some, too.
      if (IGNORED.has(name)) {
        if (name === 'id' && isObject(member)) schema[name] = converted(member, false)
        continue
      }
      schema[name] = DATA.has(name) ? member : converted(member, MAPS.has(name))
    }
    if (Array.isArray(schema.required) && isObject(value.properties)) {
      const { properties } = value
      schema.required = schema.required.filter(
        (name) => typeof name !== 'string' || !isReadOnly((properties as JsonObject)[name]),
      )
    }
    for (const [exclusive, inclusive] of [
      ['exclusiveMinimum', 'minimum'],
      ['exclusiveMaximum', 'maximum'],
    ] as const) {
      if (typeof schema[exclusive] !== 'boolean') continue
      if (schema[exclusive]) {
        schema[exclusive] = schema[inclusive]
        delete schema[inclusive]
      } else delete schema[exclusive]
    }
    return is30 && value.nullable === true ? { anyOf: [schema, { type: 'null' }] } : schema
  }
  return converted(document, false)
}
