/** A JSON Schema in words, for the page of the documentation. */
import type { JsonSchema } from '../../routes/operation.ts'
import { definitions, escaped, prose } from './markup.ts'

/** The parts of a JSON Schema that are shown. */
interface Shown {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: Shown
  readonly anyOf?: readonly Shown[]
  readonly properties?: Readonly<Record<string, Shown>>
  readonly required?: readonly string[]
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

/** The bounds that zod adds to every integer; they are not shown. */
const NO_BOUND = Number.MAX_SAFE_INTEGER

/** Renders the members of an object. Empty without any. */
export const membersList = (schema: JsonSchema): string =>
  definitions([...membersOf(schema as Shown, '')])

function* membersOf(schema: Shown, prefix: string): Generator<readonly [string, string]> {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const isRequired = schema.required?.includes(name) === true
    yield describeValue(prefix + name, isRequired, { ...member }, member.description)
    const inner = member.items ?? member
    if (inner.properties) yield* membersOf(inner, `${prefix}${name}${member.items ? '[]' : ''}.`)
  }
}

/** Returns the name of a value, and its type with the description. */
export function describeValue(
  name: string,
  isRequired: boolean,
  schema: JsonSchema,
  description = '',
): readonly [string, string] {
  const type = `<small>${escaped(wordsOf(schema as Shown))}${isRequired ? '' : ', optional'}</small>`
  return [`<code>${escaped(name)}</code> ${type}`, prose(description)]
}

function wordsOf(schema: Shown): string {
  if (schema.$ref) return schema.$ref.split('/').at(-1) ?? ''
  if (schema.enum) return schema.enum.map(String).join(' | ')
  if (schema.const !== undefined) return String(schema.const)
  if (schema.anyOf) return schema.anyOf.map(wordsOf).join(' or ')
  if (schema.items) return `array of ${wordsOf(schema.items)}${bounds(schema, 'Items')}`
  const type = [schema.type ?? 'anything'].flat().join(' or ')
  const named = schema.format ? `${type} (${schema.format})` : type
  return named + bounds(schema, 'Length') + bounds(schema, 'imum')
}

/** Returns a text such as `, 1 to 200`; empty without bounds. */
function bounds(schema: Shown, of: 'Items' | 'Length' | 'imum'): string {
  const [least, most] = [schema[`min${of}`], schema[`max${of}`]]
  const upTo = most !== undefined && most < NO_BOUND ? most : undefined
  const from = least !== undefined && least > -NO_BOUND ? least : undefined
  if (upTo === undefined) return from === undefined ? '' : `, at least ${from}`
  return from === undefined ? `, at most ${upTo}` : `, ${from} to ${upTo}`
}
