/** Compares generated schemas with ajv over the same document, for generated requests. */
import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import * as z from 'zod/mini'
import type { Imported } from '../../cli/openapi/import.ts'
import { isObject, type JsonObject } from '../../cli/openapi/located.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { repeatableNames } from '../../src/validators/repeatable.ts'
import { createGenerator } from './generate.ts'
import { forAjv, namesIn, placeOf, pointerOf, targetOf } from './json-schema.ts'

export interface Comparison {
  /** Operations of which at least one part is compared. */
  readonly compared: number
  /** Parts whose schema ajv refuses. */
  readonly refusedByAjv: number
  readonly requests: number
  readonly valid: number
  /** Accepted although ajv refuses, with a note about the schema. */
  readonly noted: number
  /** Accepted although ajv refuses: a large number that is no multiple (docs/openapi-import.md). */
  readonly imprecise: number
  readonly disagreements: readonly string[]
}

/** Operations of a document that are compared. */
const SAMPLE = 2
const MAX_SHOWN = 200
/** The quotient of a larger number may count as whole. */
const LARGE = 1e12

/** One part of a request: the schema of the document, and the generated one. */
interface Part {
  readonly name: string
  readonly schema: unknown
  readonly pointer: string
  readonly generated: z.core.$ZodType
  /** The form in which the gateway gets a value. */
  readonly received: (value: unknown) => unknown
  /** Values that the text of the value could be. */
  readonly meanings: (value: unknown) => readonly unknown[]
}

export function compare(
  file: string,
  document: JsonObject,
  imported: Imported,
  routes: readonly RouteDefinition[],
  requests: number,
): Comparison {
  const is30 = String(document.openapi).startsWith('3.0')
  const ajv = new (is30 ? Ajv : Ajv2020)({
    strict: false,
    logger: false,
    multipleOfPrecision: 9,
    validateSchema: false,
    inlineRefs: false,
  })
  formats.default(ajv)
  ajv.addSchema({ ...(forAjv(document, is30) as object), $id: 'document' })
  // An unmapped pattern is not checked.
  const approximated = imported.notes.filter(
    ({ kind }) => kind === 'approximated' || kind === 'unmapped',
  )
  const result = {
    compared: 0,
    refusedByAjv: 0,
    requests: 0,
    valid: 0,
    noted: 0,
    imprecise: 0,
    disagreements: [] as string[],
  }
  const candidates = imported.routes.flatMap((route, index) => {
    const parts = partsOf(document, route.place, routes[index])
    return parts.length === 0 ? [] : [{ place: route.place, parts }]
  })
  const step = Math.max(1, Math.floor(candidates.length / SAMPLE))
  for (const { place, parts } of candidates
    .filter((_, index) => index % step === 0)
    .slice(0, SAMPLE)) {
    let isCompared = false
    for (const part of parts) {
      const validate = compiled(ajv, part.pointer)
      if (validate === undefined) {
        result.refusedByAjv += 1
        continue
      }
      isCompared = true
      const places = [`${place} ${part.name}`, ...placesBelow(document, part.schema)]
      const isNoted = approximated.some((note) =>
        places.some(
          (at) =>
            note.place === at ||
            (/^[/ ]/.test(note.place.slice(at.length)) && note.place.startsWith(at)),
        ),
      )
      const generate = createGenerator(document, part.schema, `${file} ${place} ${part.name}`)
      for (let count = 0; count < requests; count += 1) {
        const value = generate(count % 2 === 0)
        if (value === undefined) continue
        result.requests += 1
        const isValid = part.meanings(value).some((meaning) => validate(meaning) === true)
        if (isValid) result.valid += 1
        const parsed = z.safeParse(part.generated, part.received(value))
        if (parsed.success === isValid) continue
        if (parsed.success && isNoted) result.noted += 1
        else if (parsed.success && isImprecise(part.schema, value)) result.imprecise += 1
        else
          result.disagreements.push(
            `${place} ${part.name}: ${isValid ? 'ajv accepts' : 'ajv refuses'} ${JSON.stringify(value).slice(0, MAX_SHOWN)} ` +
              (isValid
                ? JSON.stringify(parsed.error?.issues).slice(0, MAX_SHOWN)
                : JSON.stringify(validate.errors?.[0])),
          )
      }
    }
    if (isCompared) result.compared += 1
  }
  return result
}

/** Returns the places of the shared schemas that a schema uses, as notes name them. */
function placesBelow(document: JsonObject, schema: unknown): ReadonlySet<string> {
  const places = new Set<string>()
  const rest: unknown[] = [schema]
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value !== 'object' || value === null) continue
    rest.push(...Object.values(value))
    const { $ref } = value as JsonObject
    if (typeof $ref !== 'string') continue
    const names = namesIn($ref)
    const place = `#${placeOf(names)}`
    if (!places.has(place)) rest.push(valueAt(document, names))
    places.add(place)
  }
  return places
}

/** zod compares quotients with the precision of floating-point numbers. */
const isImprecise = (schema: unknown, value: unknown): boolean =>
  hasLargeNumber(value) && JSON.stringify(schema).includes('"multipleOf"')

function hasLargeNumber(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(hasLargeNumber)
  return typeof value === 'number' && Math.abs(value) > LARGE
}

function compiled(ajv: Ajv, pointer: string): ValidateFunction | undefined {
  try {
    return ajv.compile({ $ref: `document#${pointer}` })
  } catch {
    // Patterns and schemas that ajv refuses.
    return undefined
  }
}

/** Returns the parts of an operation that are checked. */
function partsOf(
  document: JsonObject,
  place: string,
  route: RouteDefinition | undefined,
): readonly Part[] {
  const [method = '', template = ''] = place.split(/ (.*)/s)
  const path = ['paths', template]
  const operation = [...path, method.toLowerCase()]
  const parts: Part[] = []
  const { query, body } = route?.input ?? {}
  const same = (value: unknown) => value
  if (body !== undefined) {
    const at = targetOf(document, [...operation, 'requestBody'])
    const content = at && targetOf(document, [...at, 'content'])
    const value = content && valueAt(document, content)
    const type = Object.keys(isObject(value) ? value : {}).find((name) =>
      /^application\/json/i.test(name),
    )
    if (content !== undefined && type !== undefined) {
      const pointer = [...content, type, 'schema']
      const schema = valueAt(document, pointer)
      if (schema !== undefined)
        parts.push({
          name: 'body',
          schema,
          pointer: pointerOf(pointer),
          generated: body,
          received: same,
          meanings: (given) => [given],
        })
    }
  }
  if (query === undefined) return parts
  const repeatable = repeatableNames(query)
  for (const owner of [path, operation]) {
    const list = valueAt(document, [...owner, 'parameters'])
    for (const index of (Array.isArray(list) ? list : []).keys()) {
      const at = targetOf(document, [...owner, 'parameters', String(index)])
      const parameter = at && valueAt(document, at)
      if (at === undefined || !isObject(parameter) || parameter.in !== 'query') continue
      const { name, schema } = parameter
      // The empty text that it allows is not of its schema.
      if (parameter.allowEmptyValue === true) continue
      if (
        parameter.content !== undefined ||
        parameter.style === 'deepObject' ||
        schema === undefined
      )
        continue
      const shape = (query._zod.def as unknown as { shape?: Record<string, z.core.$ZodType> }).shape
      const generated = typeof name === 'string' ? shape?.[name] : undefined
      if (generated === undefined) continue
      parts.push({
        name: `query ${name}`,
        schema,
        pointer: pointerOf([...at, 'schema']),
        generated,
        ...(repeatable.has(String(name))
          ? {
              received: textsOf,
              meanings: (given: unknown) => meaningsOfItems(textsOf(given)),
            }
          : { received: textOf, meanings: (given: unknown) => meaningsOf(textOf(given)) }),
      })
    }
  }
  return parts
}

/** Serializes a parameter in the styles `form` and `simple`. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(',')
  if (isObject(value)) return JSON.stringify(value)
  return String(value)
}

/** The values of a parameter that is repeated: `a=1&a=2`. */
const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(textOf) : [textOf(value)]

const scalars = (part: string): readonly unknown[] => [
  part,
  ...(/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(part) ? [Number(part)] : []),
  ...(part === 'true' || part === 'false' ? [part === 'true'] : []),
]

/** A text may be read as text, number, boolean, and a list of these. */
const meaningsOf = (text: string): readonly unknown[] => [
  ...scalars(text),
  ...listsOf(text === '' ? [] : text.split(',')),
]

/** A list of one text may be a value that is no list. */
function meaningsOfItems(items: readonly string[]): readonly unknown[] {
  const [only, ...others] = items
  return [...(only !== undefined && others.length === 0 ? scalars(only) : []), ...listsOf(items)]
}

function listsOf(items: readonly string[]): readonly unknown[] {
  const numbers = items.map(
    (item) => scalars(item).find((value) => typeof value === 'number') ?? item,
  )
  const booleans = items.map(
    (item) => scalars(item).find((value) => typeof value === 'boolean') ?? item,
  )
  return [items, numbers, booleans]
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      typeof value === 'object' && value !== null ? (value as JsonObject)[name] : undefined,
    document,
  )
}
