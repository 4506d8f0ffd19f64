/** Schema of an authorization model in the format of OpenFGA's API (schema 1.1). */
import * as z from 'zod/mini'

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

/** Enough for a userset of ten levels. */
const MAX_DEPTH = 64
/** Far more than a model of the permitted size has. */
const MAX_VALUES = 50_000

/** `object` must be empty: it is always the object of the check. */
const relationName = z.strictObject({
  object: z.optional(
    z.literal('', { error: 'must be empty: it is always the object of the check' }),
  ),
  relation: z.string(),
})

const userset: z.core.$ZodType<UsersetJson> = z.lazy(() =>
  z
    .partial(
      z.strictObject(
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
            issue.code === 'unrecognized_keys'
              ? `unknown kind of userset: ${issue.keys.join(', ')}`
              : undefined,
        },
      ),
    )
    .check(
      z.refine((kinds) => Object.keys(kinds).length === 1, {
        error: 'must be a userset of exactly one kind',
      }),
    ),
)
const usersets = z.strictObject({
  child: z.array(userset).check(z.minLength(2, 'must contain at least two usersets')),
})

/** The source file of a definition in a modular model. Ignored by decisions. */
const origin = {
  module: z.optional(z.string()),
  source_info: z.nullish(z.looseObject({})),
}

const directType = z.strictObject({
  type: z.string(),
  relation: z.optional(z.string()),
  wildcard: z.nullish(z.strictObject({})),
  condition: z.optional(z.string()),
})
export type DirectTypeJson = z.infer<typeof directType>

const typeDefinition = z.strictObject({
  type: z.string(),
  relations: z.nullish(z.record(z.string(), userset)),
  metadata: z.nullish(
    z.strictObject({
      relations: z.nullish(
        z.record(
          z.string(),
          z.strictObject({
            directly_related_user_types: z.nullish(z.array(directType)),
            ...origin,
          }),
        ),
      ),
      ...origin,
    }),
  ),
})
export type TypeDefinitionJson = z.infer<typeof typeDefinition>

/** Safe only if {@link unboundedness} is undefined. Does NOT check references. */
export const relationModelSchema = z.strictObject({
  id: z.optional(z.string()),
  schema_version: z.string(),
  type_definitions: z.array(typeDefinition),
  conditions: z.nullish(z.record(z.string(), z.unknown())),
})

/**
 * Returns why `value` must not be parsed: containers nested deeper than 64 levels, or cyclic; more
 * than 50,000 values; a member name `__proto__`, which parsers silently drop; or objects that are
 * not plain, because they could inherit members. Safe for every `value`.
 */
export function unboundedness(value: unknown): string | undefined {
  const left: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }]
  let seen = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue
    if (next.depth >= MAX_DEPTH) return 'is nested too deeply'
    if (!isPlain(next.value)) return 'is not JSON'
    if (Object.hasOwn(next.value, '__proto__')) return '__proto__ cannot be a name'
    const values = Object.values(next.value)
    seen += values.length
    if (seen > MAX_VALUES) return 'is too large'
    for (const part of values) left.push({ value: part, depth: next.depth + 1 })
  }
  return undefined
}

/** Also accepts plain objects of another realm, which has its own prototypes. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
}
