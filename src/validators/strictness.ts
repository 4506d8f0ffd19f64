/** Schemas that a policy contains. They may be of `zod` or `zod/mini`. */
// Imported by name: a property access on the namespace `z.core` would bundle all of zod.
import { $ZodType } from 'zod/v4/core'
import * as z from './zod.ts'

export const zodSchema = z.custom<$ZodType>((value) => value instanceof $ZodType, {
  error: 'must be a zod schema',
  abort: true,
})

/** The parts of zod's definitions that contain other schemas. */
interface Definition {
  readonly type: string
  readonly catchall?: $ZodType
  readonly shape?: Readonly<Record<string, $ZodType>>
  readonly element?: $ZodType
  readonly innerType?: $ZodType
  readonly valueType?: $ZodType
  readonly left?: $ZodType
  readonly right?: $ZodType
  readonly in?: $ZodType
  readonly out?: $ZodType
  readonly rest?: $ZodType | null
  readonly options?: readonly $ZodType[]
  readonly items?: readonly $ZodType[]
  readonly getter?: () => $ZodType
}

/**
 * Reports whether `schema` contains, at any depth, a `z.object` that silently drops unknown keys.
 * The origin receives the caller's bytes, so a dropped key would reach it unchecked. Use
 * `z.strictObject`, which refuses unknown keys, or `z.looseObject`, which passes them explicitly.
 */
export function dropsUnknownKeys(schema: $ZodType, seen: Set<$ZodType> = new Set()): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  const definition = schema._zod.def as unknown as Definition
  if (definition.type === 'object' && definition.catchall === undefined) return true
  return partsOf(definition).some((part) => dropsUnknownKeys(part, seen))
}

function partsOf(definition: Definition): readonly $ZodType[] {
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
