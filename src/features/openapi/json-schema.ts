/**
 * JSON Schemas of zod schemas, in place of `z.toJSONSchema`. That one adds 6 KiB to a bundle, for older drafts and for references
 * of schemas to themselves, which have no meaning inside of an OpenAPI document.
 */
import * as z from 'zod/mini'

/** A JSON Schema (draft 2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>

/** The input (before defaults and transformations) or the output. */
type Side = 'input' | 'output'
type Schema = z.core.$ZodType
type Describe = (part: Schema) => JsonSchema

/** What checks define, as far as JSON Schema has a keyword for it. */
interface CheckDefinition {
  readonly check?: string
  readonly value?: number
  readonly inclusive?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly length?: number
  readonly format?: string
  readonly pattern?: RegExp
  readonly local?: boolean
  readonly precision?: number | null
}

/** Formats that have another name in JSON Schema. */
const FORMATS: Readonly<Record<string, string>> = {
  guid: 'uuid',
  url: 'uri',
  datetime: 'date-time',
  json_string: 'json-string',
}

/** The least and the greatest number of formats. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  safeint: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
}

/** Describes a schema. What JSON Schema cannot express accepts anything. */
export const jsonSchemaOf = (schema: Schema, side: Side): JsonSchema =>
  JSON.parse(
    JSON.stringify(describeSchema(schema, side, []), (_, value) =>
      typeof value === 'bigint' ? Number(value) : value,
    ),
  )

/** `above` are the schemas that contain this one. Inside of itself, a schema accepts anything. */
function describeSchema(schema: Schema, side: Side, above: readonly Schema[]): JsonSchema {
  if (above.includes(schema)) return {}
  const inside = [...above, schema]
  const described = {
    ...describeType(schema, side, (part) => describeSchema(part, side, inside)),
    ...z.globalRegistry.get(schema),
    id: undefined,
  }
  // Examples are values of the output.
  return side === 'input' && transforms(schema) ? { ...described, examples: undefined } : described
}

function describeType(schema: Schema, side: Side, describe: Describe): JsonSchema {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'string':
      return describeText(checksOf(schema))
    case 'number':
      return describeNumber(checksOf(schema))
    case 'boolean':
    case 'null':
      return { type: def.type }
    case 'never':
      return { not: {} }
    case 'template_literal':
      return { type: 'string', pattern: schema._zod.pattern?.source }
    case 'enum':
      return oneOf([...(schema._zod.values ?? [])])
    case 'literal': {
      const given = def.values.filter((value) => value !== undefined)
      const { enum: values, ...type } = oneOf(
        given.map((value) => (typeof value === 'bigint' ? Number(value) : value)),
      )
      return values?.length === 1 ? { ...type, const: values[0] } : { ...type, enum: values }
    }
    case 'array':
      return { type: 'array', items: describe(def.element), ...lengths(checksOf(schema), 'Items') }
    case 'tuple':
      return {
        type: 'array',
        prefixItems: def.items.map(describe),
        items: def.rest ? describe(def.rest) : false,
        minItems: def.items.findLastIndex((item) => isRequired(item, side)) + 1 || undefined,
        maxItems: def.rest ? undefined : def.items.length,
      }
    case 'object':
      return describeObject(def, side, describe)
    case 'record':
      return describeRecord(def, side, describe)
    case 'union': {
      const options = def.options.map(describe)
      return def.inclusive === false ? { oneOf: options } : anyOf(options)
    }
    case 'nullable':
      return anyOf([describe(def.innerType), { type: 'null' }])
    case 'intersection':
      return { allOf: [def.left, def.right].map((part) => withOthers(describe(part))) }
    case 'pipe':
      return describe(side === 'output' || isTransform(def.in) ? def.out : def.in)
    case 'lazy':
      return describe((schema as z.core.$ZodLazy)._zod.innerType)
    case 'readonly':
      return { ...describe(def.innerType), readOnly: true }
    case 'default':
      return {
        ...describe(def.innerType),
        default: side === 'input' && transforms(schema) ? undefined : def.defaultValue,
      }
    case 'catch':
      return { ...describe(def.innerType), default: fallbackOf(def) }
    case 'prefault':
      return {
        ...describe(def.innerType),
        default: side === 'input' ? def.defaultValue : undefined,
      }
    default:
      // A wrapper without a meaning for JSON, or a type that JSON does not have.
      return 'innerType' in def ? describe(def.innerType) : {}
  }
}

/** Returns the value in place of an invalid one, unless it depends on what is invalid. */
function fallbackOf({ catchValue }: z.core.$ZodCatchDef): unknown {
  try {
    return catchValue(undefined as never)
  } catch {
    return undefined
  }
}

function describeText(checks: readonly CheckDefinition[]): JsonSchema {
  const { format, local, precision } = checks.findLast((check) => check.format) ?? {}
  // A time without an offset, or without seconds, is no time of RFC 3339.
  const isNamed = format && !['regex', 'time'].includes(format) && !local && precision !== -1
  const patterns = [...new Set(checks.flatMap(({ pattern }) => pattern?.source ?? []))]
  return {
    type: 'string',
    ...lengths(checks, 'Length'),
    format: isNamed ? (FORMATS[format] ?? format) : undefined,
    contentEncoding: format?.startsWith('base64') ? format : undefined,
    ...(patterns.length > 1
      ? { allOf: patterns.map((pattern) => ({ pattern })) }
      : { pattern: patterns[0] }),
  }
}

function describeNumber(checks: readonly CheckDefinition[]): JsonSchema {
  const formats = checks.flatMap(({ format }) => format ?? [])
  const ranges = formats.flatMap((format) => [RANGES[format] ?? []])
  const given = (kind: string, isInclusive: boolean) =>
    checks.flatMap(({ check, inclusive, value = 0 }) =>
      check === kind && inclusive === isInclusive ? value : [],
    )
  const least = Math.max(...given('greater_than', true), ...ranges.flatMap(([from]) => from ?? []))
  const most = Math.min(...given('less_than', true), ...ranges.flatMap(([, to]) => to ?? []))
  const above = Math.max(...given('greater_than', false))
  const below = Math.min(...given('less_than', false))
  return {
    type: formats.some((format) => format.includes('int')) ? 'integer' : 'number',
    ...(above >= least ? bound('exclusiveMinimum', above) : bound('minimum', least)),
    ...(below <= most ? bound('exclusiveMaximum', below) : bound('maximum', most)),
    multipleOf: checks.find(({ check }) => check === 'multiple_of')?.value,
  }
}

const bound = (keyword: string, value: number): JsonSchema =>
  Number.isFinite(value) ? { [keyword]: value } : {}

/** Returns the bounds of a length, such as `minLength` and `maxLength`. */
function lengths(checks: readonly CheckDefinition[], of: 'Length' | 'Items'): JsonSchema {
  const given = (end: 'minimum' | 'maximum') =>
    checks.flatMap(({ [end]: value, length }) => value ?? length ?? [])
  return {
    ...bound(`min${of}`, Math.max(...given('minimum'))),
    ...bound(`max${of}`, Math.min(...given('maximum'))),
  }
}

/** Returns what the checks of a schema define. A schema with a format is a check itself. */
function checksOf({ _zod: { def } }: Schema): readonly CheckDefinition[] {
  return [def, ...(def.checks ?? []).map((check) => check._zod.def)] as CheckDefinition[]
}

function oneOf(values: readonly unknown[]) {
  if (values.length === 0) return { not: {} }
  const [type, ...others] = new Set(values.map((value) => (value === null ? 'null' : typeof value)))
  return { type: others.length > 0 ? undefined : type, enum: values }
}

/** Describes alternatives, by a list of their types if they have nothing else. */
function anyOf(options: readonly JsonSchema[]): JsonSchema {
  const isTypes = options.every(
    ({ type, ...rest }) => type && Object.values(rest).every((value) => value === undefined),
  )
  if (!isTypes) return { anyOf: options }
  const types = [...new Set(options.flatMap(({ type }) => type))]
  return { type: types.length > 1 ? types : types[0] }
}

/** Allows more members, because the other part of an intersection has members too. */
const withOthers = ({ additionalProperties, ...rest }: JsonSchema): JsonSchema => ({
  ...rest,
  additionalProperties: additionalProperties || undefined,
})

function describeObject(
  { shape, catchall }: z.core.$ZodObjectDef,
  side: Side,
  describe: Describe,
): JsonSchema {
  const members = Object.entries(shape)
  const required = members.flatMap(([name, member]) => (isRequired(member, side) ? name : []))
  return {
    type: 'object',
    properties: Object.fromEntries(members.map(([name, member]) => [name, describe(member)])),
    required: required.length > 0 ? required : undefined,
    additionalProperties: catchall
      ? catchall._zod.def.type !== 'never' && describe(catchall)
      : side === 'input' && undefined,
  }
}

function describeRecord(def: z.core.$ZodRecordDef, side: Side, describe: Describe): JsonSchema {
  const names: { readonly type?: unknown; readonly pattern?: string } = describe(def.keyType)
  const value = describe(def.valueType)
  // Members with other names are not checked.
  if ('mode' in def && def.mode === 'loose')
    return { type: 'object', patternProperties: { [names.pattern ?? '']: value } }
  const isPartial = 'partial' in def && def.partial
  const isOptional = side === 'input' && !isRequired(def.valueType, side)
  const listed = isPartial || isOptional ? [] : [...(def.keyType._zod.values ?? [])]
  return {
    type: 'object',
    // Names are text: a rule for numbers would refuse all of them.
    propertyNames: names.type === 'number' || names.type === 'integer' ? undefined : names,
    additionalProperties: value,
    required: listed.length > 0 ? listed.map(String) : undefined,
  }
}

/** Reports whether a member must be there. What a transformation accepts is not declared. */
function isRequired(schema: Schema, side: Side): boolean {
  if (side === 'output') return schema._zod.optout === undefined
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'pipe' && isTransform(def.in)) return isRequired(def.out, side)
  if (def.type === 'catch') return isRequired(def.innerType, side)
  return schema._zod.optin === undefined
}

const isTransform = (schema: Schema): boolean => schema._zod.def.type === 'transform'

/** Reports whether the output of a schema may be another value than its input. */
function transforms(schema: Schema, above: readonly Schema[] = []): boolean {
  if (above.includes(schema)) return false
  const { def } = schema._zod
  const parts: unknown[] = Object.values({ ...def, ...('shape' in def && (def.shape as object)) })
  return (
    isTransform(schema) ||
    parts.flat().some((part) => isSchema(part) && transforms(part, [...above, schema]))
  )
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && '~standard' in value
