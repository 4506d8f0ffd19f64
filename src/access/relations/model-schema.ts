/** Schema of an authorization model in the format of OpenFGA's API (schema 1.1). */
import * as z from 'zod/mini'
import { partial } from '../../validators/schema-parts.ts'

/** How subjects get a relation. Has exactly one member. */
export interface UsersetJson {
  /** The subjects that tuples of the relation name: `{}`. */
  readonly this?: object | undefined
  /** The subjects that have another relation to the same object. */
  readonly computedUserset?: RelationNameJson | undefined
  /** The subjects that have a relation to the objects that tuples of another relation name. */
  readonly tupleToUserset?: TupleToUsersetJson | undefined
  /** The subjects of any of several usersets. */
  readonly union?: UsersetsJson | undefined
  /** The subjects that all of several usersets contain. */
  readonly intersection?: UsersetsJson | undefined
  /** The subjects of one userset that another one does not contain. */
  readonly difference?: DifferenceJson | undefined
}

interface RelationNameJson {
  /** Empty: it is always the object of the check. */
  readonly object?: '' | undefined
  /** The name of the relation. */
  readonly relation: string
}

interface TupleToUsersetJson {
  /** The relation of this object whose tuples name other objects. */
  readonly tupleset: RelationNameJson
  /** The relation that subjects have to those objects. */
  readonly computedUserset: RelationNameJson
}

interface UsersetsJson {
  /** Two usersets or more. */
  readonly child: readonly UsersetJson[]
}

interface DifferenceJson {
  /** The userset with all subjects. */
  readonly base: UsersetJson
  /** The userset whose subjects are removed. */
  readonly subtract: UsersetJson
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
  partial(
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
  ).check(
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

/** The source file of a definition in a modular model. Ignored by decisions. */
interface OriginJson {
  /** The module that contains the definition. Ignored by decisions. */
  readonly module?: string | undefined
  /** The file of the module. Ignored by decisions. */
  readonly source_info?: object | null | undefined
}

/** Subjects that tuples of a relation may name. */
export interface DirectTypeJson {
  /** The type of the subjects: `user` permits `user:anne`. */
  readonly type: string
  /** The relation of a userset: `member` permits `group:staff#member`. */
  readonly relation?: string | undefined
  /** `{}` permits all subjects of the type: `user:*`. */
  readonly wildcard?: object | null | undefined
  /** A condition of OpenFGA. Models with conditions are refused. */
  readonly condition?: string | undefined
}

interface RelationMetadataJson extends OriginJson {
  /** What tuples of the relation may name. Empty: tuples cannot assign it. */
  readonly directly_related_user_types?: readonly DirectTypeJson[] | null | undefined
}

interface TypeMetadataJson extends OriginJson {
  /** What tuples may name, for each relation of the type. */
  readonly relations?: Readonly<Record<string, RelationMetadataJson>> | null | undefined
}

export interface TypeDefinitionJson {
  /** The name of the type, such as `document`. */
  readonly type: string
  /** How subjects get each relation to objects of the type, by its name. */
  readonly relations?: Readonly<Record<string, UsersetJson>> | null | undefined
  /** What tuples may name, and where definitions are from. */
  readonly metadata?: TypeMetadataJson | null | undefined
}

/** An authorization model in the format of OpenFGA's API. */
export interface RelationModelJson {
  /** The JSON Schema of the file, for editors. Ignored. */
  readonly $schema?: string | undefined
  /** The id of the model in OpenFGA. Ignored. */
  readonly id?: string | undefined
  /** The version of the language: `1.1`. */
  readonly schema_version: string
  /** The types of subjects and objects. */
  readonly type_definitions: readonly TypeDefinitionJson[]
  /** Conditions of OpenFGA. Models with conditions are refused. */
  readonly conditions?: Readonly<Record<string, unknown>> | null | undefined
}

const directType = z.strictObject({
  type: z.string(),
  relation: z.optional(z.string()),
  wildcard: z.nullish(z.strictObject({})),
  condition: z.optional(z.string()),
})

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

/** Safe only if {@link unboundedness} is undefined. Does NOT check references. */
export const relationModelSchema = z.strictObject({
  $schema: z.optional(z.string()),
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
