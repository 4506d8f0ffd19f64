/** The shape of an authorization model as OpenFGA's API takes it (schema 1.1). */
import * as z from 'zod'

/** One of the five kinds of a userset, or `this`. */
export interface UsersetJson {
  readonly this?: object | undefined
  readonly computedUserset?: RelationNameJson | undefined
  readonly tupleToUserset?:
    | { readonly tupleset: RelationNameJson; readonly computedUserset: RelationNameJson }
    | undefined
  readonly union?: { readonly child: readonly UsersetJson[] } | undefined
  readonly intersection?: { readonly child: readonly UsersetJson[] } | undefined
  readonly difference?: { readonly base: UsersetJson; readonly subtract: UsersetJson } | undefined
}

interface RelationNameJson {
  readonly relation: string
}

/** A value that is no model. More of it is not looked at, nor safe to look at. */
export type Unbounded = 'nesting' | 'size' | 'name' | 'kind'

/** Containers within each other: what a userset of ten levels needs, and some. */
const MAX_DEPTH = 64
/** Values of any kind: far more than a model of the permitted size has. */
const MAX_VALUES = 50_000

/** Empty where it stands: the object is always the one that is asked about. */
const relationName = z.strictObject({
  object: z.literal('', { error: 'must be empty: it is always the object asked about' }).optional(),
  relation: z.string(),
})

const userset: z.ZodType<UsersetJson> = z.lazy(() =>
  z
    .strictObject(
      {
        this: z.strictObject({}),
        computedUserset: relationName,
        tupleToUserset: z.strictObject({ tupleset: relationName, computedUserset: relationName }),
        union: usersets,
        intersection: usersets,
        difference: z.strictObject({ base: userset, subtract: userset }),
      },
      {
        error: (issue) =>
          issue.code === 'unrecognized_keys' ? unknownKind(issue.keys) : undefined,
      },
    )
    .partial()
    .refine((kinds) => Object.keys(kinds).length === 1, {
      error: 'must be a userset of exactly one kind',
    }),
)
const usersets = z.strictObject({
  child: z.array(userset).min(2, 'must be two usersets at least'),
})

const unknownKind = (keys: readonly string[]): string =>
  `${keys.join(', ')}: no such kind of userset`

/** Where a definition comes from in a model of several files. Means nothing to a decision. */
const origin = {
  module: z.string().optional(),
  source_info: z.looseObject({}).nullish(),
}

const directType = z.strictObject({
  type: z.string(),
  relation: z.string().optional(),
  wildcard: z.strictObject({}).nullish(),
  condition: z.string().optional(),
})
export type DirectTypeJson = z.infer<typeof directType>

const typeDefinition = z.strictObject({
  type: z.string(),
  relations: z.record(z.string(), userset).nullish(),
  metadata: z
    .strictObject({
      relations: z
        .record(
          z.string(),
          z.strictObject({
            directly_related_user_types: z.array(directType).nullish(),
            ...origin,
          }),
        )
        .nullish(),
      ...origin,
    })
    .nullish(),
})
export type TypeDefinitionJson = z.infer<typeof typeDefinition>

/**
 * The shape alone: whether what it names is there is not checked. Safe only for what
 * {@link unboundedness} finds nothing in.
 */
export const relationModelSchema = z.strictObject({
  id: z.string().optional(),
  schema_version: z.string(),
  type_definitions: z.array(typeDefinition),
  conditions: z.record(z.string(), z.unknown()).nullish(),
})

/**
 * Why `value` is not to be read at all: it is nested deeper than 64 containers or within itself, has
 * more than 50,000 values, a name `__proto__`, which readers would drop in silence, or objects that
 * no JSON has, and that may have inherited what is read. Looks at no more than that, whatever `value`
 * is; undefined where it can be read.
 */
export function unboundedness(value: unknown): Unbounded | undefined {
  const left: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }]
  let seen = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    if (next.depth >= MAX_DEPTH) return 'nesting'
    if (!isPlain(next.value)) return 'kind'
    if (Object.hasOwn(next.value, '__proto__')) return 'name'
    const values = Object.values(next.value)
    seen += values.length
    if (seen > MAX_VALUES) return 'size'
    for (const part of values) left.push({ value: part, depth: next.depth + 1 })
  }
  return undefined
}

/** Also an object of another realm, which has prototypes of its own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
}
