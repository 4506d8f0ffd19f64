/** Code for objects and arrays. */
import { type Code, call, checked, list, literal, object, prefixed } from '../code.ts'
import { at, isObject, type JsonObject, type Located } from '../located.ts'
import type { SchemaContext } from './context.ts'
import { countIn, expressionCode } from './scalars.ts'

/** Names that every object inherits: zod would find them in an empty object. */
const INHERITED: ReadonlySet<string> = new Set([
  '__proto__',
  ...Object.getOwnPropertyNames(Object.prototype),
])

export function arrayCode(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
): Code {
  const { value } = schema
  const { notes, use } = context
  const checks: Code[] = []
  const min = countIn(context, value, 'minItems', place) ?? 0
  const max = countIn(context, value, 'maxItems', place)
  if (min > 0) checks.push(`z.minLength(${min})`)
  if (max !== undefined) checks.push(`z.maxLength(${max})`)
  if (value.uniqueItems === true) checks.push(`${use('uniqueItems')}()`)
  const first = context.document.is30 ? undefined : value.prefixItems
  if (Array.isArray(value.items)) {
    context.document.coverage.useAll(at(schema, 'items'))
    notes.unmapped(place, 'items is a list of schemas, and is not checked')
    return checked(call('z.array', `${use('json')}()`), checks)
  }
  const rest = () =>
    value.items === undefined
      ? `${use('json')}()`
      : context.code(at(schema, 'items'), `${place}/items`)
  if (!Array.isArray(first) || first.length === 0) return checked(call('z.array', rest()), checks)
  const items = first.map((_, index) =>
    call(
      'z.optional',
      context.code(at(schema, 'prefixItems', index), `${place}/prefixItems/${index}`),
    ),
  )
  const others = value.items === false ? [] : [rest()]
  return checked(call('z.tuple', list(items), ...others), checks)
}

export function objectCode(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
): Code {
  const { value } = schema
  const { use } = context
  const properties = isObject(value.properties) ? value.properties : {}
  const required = requiredNames(context, schema)
  const additional = value.additionalProperties
  const patterns = patternMembers(context, schema, place)
  const checks: Code[] = []
  const shape: [string, Code][] = []
  const inherited: [string, Code][] = []
  const missing: string[] = []

  for (const name of Object.keys(properties)) {
    const code = context.code(at(schema, 'properties', name), `${place}/${name}`)
    if (INHERITED.has(name)) {
      inherited.push([name, code])
      if (required.has(name)) missing.push(name)
    } else shape.push([name, required.has(name) ? code : call('z.optional', code)])
  }
  missing.push(...[...required].filter((name) => !Object.hasOwn(properties, name)))
  const rest = isObject(additional)
    ? context.code(at(schema, 'additionalProperties'), `${place}/*`)
    : undefined
  const names =
    value.propertyNames === undefined || context.document.is30
      ? undefined
      : context.code(at(schema, 'propertyNames'), `${place} names`)
  const isSimple = patterns.length === 0 && inherited.length === 0

  if (missing.length > 0) checks.push(call(use('hasKeys'), ...missing.map(literal)))
  if (!isSimple || names !== undefined) {
    const known = shape.map(([name]) => name)
    const isClosed = !isSimple && (additional === false || rest !== undefined)
    const rules: [string, Code][] = []
    if (inherited.length > 0) rules.push(['named', object(inherited)])
    if (patterns.length > 0) rules.push(['patterns', list(patterns)])
    if (known.length > 0 && isClosed) rules.push(['known', list(known.map(literal))])
    if (isClosed) rules.push(['rest', additional === false ? 'false' : (rest ?? 'false')])
    if (names !== undefined) rules.push(['names', names])
    checks.push(call(use('members'), object(rules)))
  }
  checks.push(...memberChecks(context, value, place))
  if (!isSimple) return checked(call('z.looseObject', object(shape)), checks)
  if (rest !== undefined)
    return checked(
      shape.length === 0
        ? call('z.record', 'z.string()', rest)
        : call('z.catchall', call('z.object', object(shape)), rest),
      checks,
    )
  const kind = additional === false ? 'z.strictObject' : 'z.looseObject'
  return checked(call(kind, object(shape)), checks)
}

/** Returns the required names. A request need not contain a property that only responses have. */
function requiredNames({ document }: SchemaContext, schema: Located<JsonObject>): Set<string> {
  const { required } = schema.value
  const names = Array.isArray(required) ? required : []
  return new Set(
    names.filter((name): name is string => {
      if (typeof name !== 'string') return false
      const property = at(schema, 'properties', name)
      const target = document.resolve(property)?.value
      return ![property.value, target].some((part) => isObject(part) && part.readOnly === true)
    }),
  )
}

function patternMembers(
  context: SchemaContext,
  schema: Located<JsonObject>,
  place: string,
): readonly Code[] {
  const { patternProperties } = schema.value
  if (!isObject(patternProperties) || context.document.is30) return []
  return Object.keys(patternProperties).map((pattern) => {
    const inside = `${place}/${pattern}`
    const code = context.code(at(schema, 'patternProperties', pattern), inside)
    const expression = expressionCode(context, pattern, inside)
    // Without the expression, any name could match it.
    return expression === undefined
      ? list(['/^/', `${context.use('json')}()`])
      : list([expression, code])
  })
}

function memberChecks(context: SchemaContext, schema: JsonObject, place: string): readonly Code[] {
  const checks: Code[] = []
  const min = countIn(context, schema, 'minProperties', place) ?? 0
  const max = countIn(context, schema, 'maxProperties', place)
  if (min > 0) checks.push(`${context.use('minMembers')}(${min})`)
  if (max !== undefined) checks.push(`${context.use('maxMembers')}(${max})`)
  const { dependentRequired } = schema
  if (isObject(dependentRequired) && !context.document.is30)
    checks.push(prefixed('', call(context.use('dependentKeys'), literal(dependentRequired))))
  return checks
}
