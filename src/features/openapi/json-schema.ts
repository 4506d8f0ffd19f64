/** The JSON Schema of zod schemas. `z.toJSONSchema` would add 6 KiB to a bundle. */
import { globalRegistry } from 'zod/mini'
import type { $ZodType, $ZodTypes } from 'zod/v4/core'
import type { JsonSchema, ToJsonSchema } from '../../routes/operation.ts'

/** What a check of zod declares. */
interface Check {
  readonly check?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly value?: unknown
  readonly format?: string
  readonly pattern?: RegExp
}

const FORMATS: Readonly<Record<string, string>> = { datetime: 'date-time', url: 'uri' }

/**
 * Describes a schema of the gateway's own calls as `z.toJSONSchema` does: a test compares both over all calls. Throws
 * `TypeError` for a kind that these calls do not have. Does NOT see other checks, such as an exclusive bound, a literal
 * `null` or a discriminator, and does NOT serve schemas of users: their operations have a `toJsonSchema` of their own.
 */
export const toJsonSchema: ToJsonSchema = (schema, use) => ({
  ...describeKind(schema as $ZodTypes, use),
  ...globalRegistry.get(schema),
})

function describeKind({ _zod: { def } }: $ZodTypes, use: 'input' | 'output'): JsonSchema {
  const describe = (inner: $ZodType) => toJsonSchema(inner, use)
  switch (def.type) {
    case 'string':
      return { type: 'string', ...describeBounds(def, 'Length'), ...describeFormat(def) }
    case 'number': {
      const isInteger = checksOf(def).some(({ format }) => format === 'safeint')
      return { type: isInteger ? 'integer' : 'number', ...describeBounds(def, 'imum', isInteger) }
    }
    case 'boolean':
    case 'null':
      return { type: def.type }
    case 'enum':
      return { type: 'string', enum: Object.values(def.entries) }
    case 'literal':
      if (def.values.length > 1) break
      return { type: typeof def.values[0], const: def.values[0] }
    case 'array':
      return { type: 'array', items: describe(def.element), ...describeBounds(def, 'Items') }
    case 'object': {
      const others = def.catchall?._zod.def.type
      if (others !== 'never' && others !== 'unknown') break
      const members = Object.entries(def.shape)
      const required = members.filter(
        ([, { _zod }]) => (use === 'input' ? _zod.optin : _zod.optout) === undefined,
      )
      return {
        type: 'object',
        properties: Object.fromEntries(members.map(([name, member]) => [name, describe(member)])),
        ...(required.length > 0 && { required: required.map(([name]) => name) }),
        additionalProperties: others === 'unknown' && {},
      }
    }
    case 'record':
      return {
        type: 'object',
        propertyNames: describe(def.keyType),
        additionalProperties: describe(def.valueType),
      }
    case 'union':
      return describeUnion(def.options.map(describe))
    case 'nullable':
      return describeUnion([describe(def.innerType), { type: 'null' }])
    case 'optional':
      return describe(def.innerType)
    case 'default':
      return { ...describe(def.innerType), default: def.defaultValue }
    case 'pipe':
      return describe(use === 'output' || def.in._zod.def.type === 'transform' ? def.out : def.in)
    case 'unknown':
      return {}
  }
  throw new TypeError(def.type)
}

/** A schema with a format is a check as well. */
const checksOf = ({ checks = [], ...def }: $ZodTypes['_zod']['def']): readonly Check[] => [
  def as Check,
  ...checks.map(({ _zod }) => _zod.def as Check),
]

function describeBounds(
  def: $ZodTypes['_zod']['def'],
  of: 'Items' | 'Length' | 'imum',
  isInteger = false,
): JsonSchema {
  const checks = checksOf(def)
  const valuesOf = (kind: string) =>
    checks.flatMap(({ check, value }) => (check === kind ? [Number(value)] : []))
  const least = [...checks.flatMap(({ minimum }) => minimum ?? []), ...valuesOf('greater_than')]
  const most = [...checks.flatMap(({ maximum }) => maximum ?? []), ...valuesOf('less_than')]
  if (isInteger) {
    least.push(Number.MIN_SAFE_INTEGER)
    most.push(Number.MAX_SAFE_INTEGER)
  }
  return {
    ...(least.length > 0 && { [`min${of}`]: Math.max(...least) }),
    ...(most.length > 0 && { [`max${of}`]: Math.min(...most) }),
  }
}

function describeFormat(def: $ZodTypes['_zod']['def']): JsonSchema {
  const checks = checksOf(def)
  const format = checks.flatMap((check) => check.format ?? []).at(-1)
  const patterns = checks.flatMap(({ pattern }) => pattern?.source ?? [])
  return {
    ...(format !== undefined && format !== 'regex' && { format: FORMATS[format] ?? format }),
    ...(patterns.length === 1 && { pattern: patterns[0] }),
    ...(patterns.length > 1 && { allOf: patterns.map((pattern) => ({ pattern })) }),
  }
}

/** One list of types, if the options are only types. */
function describeUnion(options: readonly JsonSchema[]): JsonSchema {
  const isTypes = options.every((option) => Object.keys(option).join() === 'type')
  return isTypes ? { type: [...new Set(options.flatMap(({ type }) => type))] } : { anyOf: options }
}
