/** Schemas that a policy contains. They may be of `zod` or `zod/mini`. */
// Imported by name: a property access on the namespace `z.core` would bundle all of zod.

import * as z from 'zod/mini'
import { $ZodType } from 'zod/v4/core'

export const zodSchema = z.custom<$ZodType>((value) => value instanceof $ZodType, {
  error: 'must be a zod schema',
  abort: true,
})

/** The members of zod's definitions that contain other schemas: one, a list, or by name. */
const PARTS = [
  'shape',
  'catchall',
  'options',
  'items',
  'rest',
  'element',
  'innerType',
  'valueType',
  'left',
  'right',
  'in',
  // For `z.preprocess` and `z.unknown().pipe()`, this side checks the keys.
  'out',
]

/**
 * Reports whether `schema` contains, at any depth, a `z.object` that silently drops unknown keys.
 * The origin receives the caller's bytes, so a dropped key would reach it unchecked.
 */
export function dropsUnknownKeys(schema: $ZodType, seen: Set<$ZodType> = new Set()): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  const definition = schema._zod.def as unknown as Readonly<Record<string, unknown>>
  const { type, catchall, getter } = definition
  if (type === 'object' && catchall === undefined) return true
  const parts = PARTS.flatMap((member) => schemasIn(definition[member]))
  if (type === 'lazy') parts.push((getter as () => $ZodType)())
  return parts.some((part) => dropsUnknownKeys(part, seen))
}

function schemasIn(part: unknown): readonly $ZodType[] {
  if (typeof part !== 'object' || part === null) return []
  return part instanceof $ZodType ? [part] : Object.values(part)
}
