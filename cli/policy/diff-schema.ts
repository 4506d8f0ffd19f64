/** The changes of an input schema, by the JSON Schema that zod writes for it. */
import { type $ZodType, toJSONSchema } from 'zod/v4/core'
import { type Change, changeOf, changeOfValue, isSame, shown } from './change.ts'

type JsonSchema = Readonly<Record<string, unknown>>

/** Keywords that admit less if they are larger. */
const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']
/** Keywords that admit more if they are larger. */
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']
const MEMBERS = ['properties', 'required', 'additionalProperties', 'items', 'enum']
const SILENT = ['$schema', 'title', 'description', 'examples', 'default', 'id', '$id']

/** Yields the changes. `of` names the input: `body of POST /orders`. Undefined: not checked. */
export function* changesInSchema(
  of: string,
  before: $ZodType | undefined,
  after: $ZodType | undefined,
): Generator<Change> {
  if (before === after) return
  if (before === undefined) yield changeOf('narrowing', of, `${of}: checked by a schema now`)
  else if (after === undefined)
    yield changeOf('widening', of, `${of}: no longer checked by a schema`)
  else yield* changesBetween(of, '', jsonSchemaOf(before), jsonSchemaOf(after))
}

const jsonSchemaOf = (schema: $ZodType): JsonSchema =>
  toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema

function* changesBetween(
  of: string,
  place: string,
  before: JsonSchema,
  after: JsonSchema,
): Generator<Change> {
  const name = place === '' ? 'the value' : place
  const at = (key: string) => (place === '' ? key : `${place}.${key}`)
  for (const keyword of [...LOWER_BOUNDS, ...UPPER_BOUNDS]) {
    const [was, is] = [before[keyword], after[keyword]]
    if (was === is) continue
    // Without a bound, everything is admitted.
    const isLarger = was === undefined || (is !== undefined && Number(is) > Number(was))
    const isNarrower =
      was === undefined || (is !== undefined && isLarger === LOWER_BOUNDS.includes(keyword))
    const text = `${of}: ${keyword} of ${name} from ${was ?? 'none'} to ${is ?? 'none'}`
    yield changeOf(isNarrower ? 'narrowing' : 'widening', of, text)
  }
  yield* changesInEnum(of, name, before.enum, after.enum)
  yield* changesInMembers(of, at, before, after)
  if (isSchema(before.items) && isSchema(after.items))
    yield* changesBetween(of, `${place}[]`, before.items, after.items)
  else yield* changeOfValue(of, `items of ${name}`, before.items, after.items)
  const compared = new Set([...LOWER_BOUNDS, ...UPPER_BOUNDS, ...MEMBERS, ...SILENT])
  const keywords = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  for (const keyword of keywords.filter((one) => !compared.has(one)))
    yield* changeOfValue(of, `${keyword} of ${name}`, before[keyword], after[keyword])
}

function* changesInEnum(of: string, name: string, before: unknown, after: unknown) {
  if (!Array.isArray(before) || !Array.isArray(after)) {
    if (isSame(before, after)) return
    const isNarrower = before === undefined
    const text = `${of}: ${name} is ${isNarrower ? `one of ${shown(after)} now` : 'no longer one of a list'}`
    yield changeOf(isNarrower ? 'narrowing' : 'widening', of, text)
    return
  }
  for (const value of after.filter((one) => !before.includes(one)))
    yield changeOf('widening', of, `${of}: ${name} may be ${shown(value)} now`)
  for (const value of before.filter((one) => !after.includes(one)))
    yield changeOf('narrowing', of, `${of}: ${name} may not be ${shown(value)} any more`)
}

function* changesInMembers(
  of: string,
  at: (key: string) => string,
  before: JsonSchema,
  after: JsonSchema,
): Generator<Change> {
  const [was, is] = [membersOf(before.properties), membersOf(after.properties)]
  const [wasRequired, isRequired] = [namesIn(before.required), namesIn(after.required)]
  const [wasStrict, isStrict] = [before, after].map((one) => one.additionalProperties === false)
  for (const key of new Set([...Object.keys(was), ...Object.keys(is)])) {
    const [one, another] = [was[key], is[key]]
    if (one !== undefined && another !== undefined) yield* changesBetween(of, at(key), one, another)
    else if (another !== undefined)
      yield wasStrict
        ? changeOf('widening', of, `${of}: ${at(key)} is accepted now`)
        : changeOf('narrowing', of, `${of}: ${at(key)} is checked now`)
    else
      yield isStrict
        ? changeOf('narrowing', of, `${of}: ${at(key)} is refused now`)
        : changeOf('widening', of, `${of}: ${at(key)} is no longer checked`)
  }
  for (const key of isRequired.filter((name) => !wasRequired.includes(name)))
    yield changeOf('narrowing', of, `${of}: ${at(key)} is required now`)
  for (const key of wasRequired.filter((name) => !isRequired.includes(name)))
    if (is[key] !== undefined) yield changeOf('widening', of, `${of}: ${at(key)} is optional now`)
  if (wasStrict !== isStrict)
    yield isStrict
      ? changeOf('narrowing', of, `${of}: unknown keys are refused now`)
      : changeOf('widening', of, `${of}: unknown keys are accepted now`)
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const membersOf = (value: unknown) =>
  (isSchema(value) ? value : {}) as Readonly<Record<string, JsonSchema | undefined>>

const namesIn = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
