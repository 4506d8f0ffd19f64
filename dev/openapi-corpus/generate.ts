/** Generates values for a schema: some that match, and some with a mistake. */
import { isObject, type JsonObject } from '../../cli/openapi/located.ts'
import { namesIn } from './json-schema.ts'

const MAX_DEPTH = 6
const TEXTS: Readonly<Record<string, string>> = {
  date: '2024-02-29',
  'date-time': '2024-02-29T12:00:00Z',
  email: 'a@example.com',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
  uri: 'https://example.com/a?b=c',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  hostname: 'api.example.com',
  byte: 'YWJj',
}
const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  2 ** 53 + 2,
  '',
  'x',
  '\u{1f600}',
  'a b',
  '2024-02-30',
  '2024-01-01T00:00:00',
  'a@',
  '::',
  [],
  ['x'],
  [1, 1],
  {},
  { unexpected: 1 },
]

/** Returns a function that returns a value, or undefined. The same seed gives the same values. */
export function createGenerator(
  document: JsonObject,
  root: unknown,
  seed: string,
): (matches: boolean) => unknown {
  const random = createRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item | undefined =>
    items[Math.floor(random() * items.length)]

  function of(schema: unknown, depth: number): unknown {
    if (!isObject(schema)) return pick(ODD)
    if (typeof schema.$ref === 'string') {
      const target = namesIn(schema.$ref).reduce<unknown>(
        (value, name) => (value as JsonObject | undefined)?.[name],
        document,
      )
      return depth > MAX_DEPTH ? {} : of(target, depth + 1)
    }
    if (schema.nullable === true && random() < 0.1) return null
    if (Array.isArray(schema.enum)) return pick(schema.enum)
    if (schema.const !== undefined) return schema.const
    for (const keyword of ['oneOf', 'anyOf'] as const) {
      const parts = schema[keyword]
      if (!Array.isArray(parts) || parts.length === 0) continue
      const chosen = of(pick(parts), depth + 1)
      const own = isObject(schema.properties) ? objectOf(schema, depth) : {}
      return isObject(chosen) ? { ...own, ...chosen } : chosen
    }
    if (Array.isArray(schema.allOf)) {
      const values = schema.allOf.map((part) => of(part, depth + 1))
      const own = isObject(schema.properties) ? objectOf(schema, depth) : {}
      return values.every(isObject) ? Object.assign({}, own, ...values) : values[0]
    }
    const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type
    return ofType(type ?? (isObject(schema.properties) ? 'object' : undefined), schema, depth)
  }

  function ofType(type: unknown, schema: JsonObject, depth: number): unknown {
    switch (type) {
      case 'string':
        return textOf(schema)
      case 'integer':
      case 'number':
        return numberOf(schema, type === 'integer')
      case 'boolean':
        return random() < 0.5
      case 'null':
        return null
      case 'array': {
        const least = Number(schema.minItems ?? 0)
        const most = Math.min(Number(schema.maxItems ?? least + 3), least + 3)
        const length = depth > MAX_DEPTH ? least : least + Math.floor(random() * (most - least + 1))
        return Array.from({ length }, () => of(schema.items, depth + 1))
      }
      case 'object':
        return objectOf(schema, depth)
      default:
        return pick(ODD)
    }
  }

  function objectOf(schema: JsonObject, depth: number): JsonObject {
    const required = Array.isArray(schema.required) ? schema.required : []
    const value: Record<string, unknown> = {}
    for (const [name, property] of Object.entries(
      isObject(schema.properties) ? schema.properties : {},
    )) {
      const isWanted = required.includes(name) || (depth < 4 && random() < 0.5)
      if (isWanted) value[name] = of(property, depth + 1)
    }
    for (const name of required) if (typeof name === 'string') value[name] ??= 'x'
    if (isObject(schema.additionalProperties) && random() < 0.5)
      value.more = of(schema.additionalProperties, depth + 1)
    return value
  }

  function textOf(schema: JsonObject): string {
    const known = typeof schema.format === 'string' ? TEXTS[schema.format] : undefined
    if (known !== undefined) return known
    const least = Math.min(Number(schema.minLength ?? 0), 200)
    const most = Math.min(Number(schema.maxLength ?? least + 12), least + 12)
    const length = least + Math.floor(random() * (most - least + 1))
    return Array.from({ length }, () => pick(['a', 'B', '7', '-', '_', '\u{1f600}'])).join('')
  }

  function numberOf(schema: JsonObject, isInteger: boolean): number {
    const least = typeof schema.minimum === 'number' ? schema.minimum : 0
    const most = typeof schema.maximum === 'number' ? schema.maximum : least + 100
    const value = least + random() * (most - least)
    const step = typeof schema.multipleOf === 'number' ? schema.multipleOf : 1
    if (isInteger || schema.multipleOf !== undefined) return Math.floor(value / step) * step
    return random() < 0.5 ? Math.floor(value) : value
  }

  /** Returns the value with one change somewhere in it. */
  function damaged(value: unknown): unknown {
    if (Array.isArray(value) && value.length > 0 && random() < 0.8) {
      const index = Math.floor(random() * value.length)
      return value.map((item, at) => (at === index ? damaged(item) : item))
    }
    if (isObject(value) && random() < 0.85) {
      const name = pick(Object.keys(value))
      if (name === undefined || random() < 0.15) return { ...value, unexpected: pick(ODD) }
      const { [name]: member, ...rest } = value
      return random() < 0.2 ? rest : { ...value, [name]: damaged(member) }
    }
    if (typeof value === 'string' && random() < 0.4)
      return random() < 0.5 ? `${value}!` : value.slice(1)
    if (typeof value === 'number' && random() < 0.4)
      return value + (pick([0.5, 1, -1, 1e10, -1e10]) ?? 0)
    return pick(ODD)
  }

  return (matches) => {
    const value = of(root, 0)
    return matches || value === undefined ? value : damaged(value)
  }
}

/** mulberry32, seeded with a text. */
function createRandom(seed: string): () => number {
  let state = 0
  for (const char of seed) state = (Math.imul(state, 31) + char.charCodeAt(0)) | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
