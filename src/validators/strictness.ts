/** Finds schemas that would let unchecked keys reach the origin. */
import type * as z from 'zod'

/** The parts of zod's definitions that contain other schemas. */
interface Definition {
  readonly type: string
  readonly catchall?: z.core.$ZodType
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>
  readonly element?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
  readonly valueType?: z.core.$ZodType
  readonly left?: z.core.$ZodType
  readonly right?: z.core.$ZodType
  readonly in?: z.core.$ZodType
  readonly out?: z.core.$ZodType
  readonly rest?: z.core.$ZodType | null
  readonly options?: readonly z.core.$ZodType[]
  readonly items?: readonly z.core.$ZodType[]
  readonly getter?: () => z.core.$ZodType
}

/**
 * Reports whether `schema` contains, at any depth, a `z.object` that silently drops unknown keys.
 * The origin receives the caller's bytes, so a dropped key would reach it unchecked. Use
 * `z.strictObject`, which refuses unknown keys, or `z.looseObject`, which passes them explicitly.
 */
export function dropsUnknownKeys(
  schema: z.core.$ZodType,
  seen: Set<z.core.$ZodType> = new Set(),
): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  const definition = schema._zod.def as unknown as Definition
  if (definition.type === 'object' && definition.catchall === undefined) return true
  return partsOf(definition).some((part) => dropsUnknownKeys(part, seen))
}

function partsOf(definition: Definition): readonly z.core.$ZodType[] {
  const { element, innerType, valueType, left, right, rest, catchall, getter } = definition
  return [
    ...Object.values(definition.shape ?? {}),
    ...(definition.options ?? []),
    ...(definition.items ?? []),
    element,
    innerType,
    valueType,
    left,
    right,
    rest,
    catchall,
    definition.in,
    // For `z.preprocess` and `z.unknown().pipe()`, this side checks the keys.
    definition.out,
    definition.type === 'lazy' ? getter?.() : undefined,
  ].filter((part) => part !== undefined && part !== null && typeof part === 'object')
}
