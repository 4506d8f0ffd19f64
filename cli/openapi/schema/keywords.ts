/** Records the keywords of schemas that the generated code contains. */
import { at, isObject, type JsonObject, type Located } from '../located.ts'
import type { SchemaContext } from './context.ts'
import { declaredTypes, type SchemaType } from './types.ts'

type Test = (value: unknown) => boolean

const isText: Test = (value) => typeof value === 'string'
const isNumber: Test = (value) => typeof value === 'number'
const isFlag: Test = (value) => typeof value === 'boolean'
const isSchema: Test = (value) => isObject(value) || typeof value === 'boolean'
const isList: Test = (value) => Array.isArray(value) && value.length > 0
const isNames: Test = (value) => Array.isArray(value) && value.every(isText)

/** Which values a keyword can have. Another value gets a note, because the keyword is not recorded. */
const VALUES: Readonly<Record<string, Test>> = {
  additionalProperties: isSchema,
  allOf: isList,
  anyOf: isList,
  const: () => true,
  dependentRequired: (value) => isObject(value) && Object.values(value).every(isNames),
  else: () => true,
  enum: (value) => Array.isArray(value),
  exclusiveMaximum: (value) => isNumber(value) || isFlag(value),
  exclusiveMinimum: (value) => isNumber(value) || isFlag(value),
  format: isText,
  if: () => true,
  items: () => true,
  maxItems: isNumber,
  maxLength: isNumber,
  maxProperties: isNumber,
  maximum: isNumber,
  minItems: isNumber,
  minLength: isNumber,
  minProperties: isNumber,
  minimum: isNumber,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  not: () => true,
  nullable: isFlag,
  oneOf: isList,
  pattern: isText,
  patternProperties: isObject,
  prefixItems: isList,
  properties: isObject,
  propertyNames: isSchema,
  readOnly: isFlag,
  required: isNames,
  // Unknown types are recorded one by one.
  type: (value) => isText(value) || isList(value),
  uniqueItems: isFlag,
}
/** Keywords with values that are schemas, or that contain schemas. These are recorded by themselves. */
const CONTAINERS: ReadonlySet<string> = new Set([
  'additionalProperties',
  'allOf',
  'anyOf',
  'else',
  'if',
  'items',
  'not',
  'oneOf',
  'patternProperties',
  'prefixItems',
  'properties',
  'propertyNames',
  'then',
])
/** Keywords that OpenAPI 3.0 does not have. */
const NOT_IN_30: ReadonlySet<string> = new Set([
  'else',
  'if',
  'patternProperties',
  'prefixItems',
  'propertyNames',
  'dependentRequired',
])

/** Keywords by the type of the values that they restrict. */
export const KEYWORDS: readonly (readonly [SchemaType, readonly string[]])[] = [
  ['string', ['minLength', 'maxLength', 'pattern']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems']],
  [
    'object',
    [
      'properties',
      'required',
      'additionalProperties',
      'patternProperties',
      'propertyNames',
      'minProperties',
      'maxProperties',
      'dependentRequired',
    ],
  ],
]

/** Records keywords whose values are valid. */
export function useKeywords(
  { document }: SchemaContext,
  schema: Located<JsonObject>,
  names: readonly string[],
): void {
  for (const name of names) {
    const value = schema.value[name]
    if (value === undefined || VALUES[name]?.(value) === false) continue
    if (document.is30 && NOT_IN_30.has(name)) continue
    const node = at(schema, name)
    if (CONTAINERS.has(name)) document.coverage.use(node)
    else document.coverage.useAll(node)
  }
}

/** Records the keywords of the types that a schema accepts, and notes those of other types. */
export function useTypedKeywords(context: SchemaContext, schema: Located<JsonObject>): void {
  const { document, notes } = context
  const types = declaredTypes(schema.value)
  useKeywords(context, schema, ['format'])
  for (const [type, keywords] of KEYWORDS) {
    const present = keywords.filter((name) => schema.value[name] !== undefined)
    const isOfType =
      types === undefined ||
      types.includes(type) ||
      (type === 'number' && types.includes('integer'))
    if (isOfType) useKeywords(context, schema, present)
    else
      for (const name of present) {
        if (VALUES[name]?.(schema.value[name]) === false) continue
        document.coverage.useAll(at(schema, name))
        notes.ignored(name, 'restricts values of a type that the schema does not accept')
      }
  }
}
