/** Suggests the word that was probably meant. */
import type { $ZodType } from 'zod/v4/core'
import { nearestTo } from '../../src/validators/nearest.ts'
import { policySchema } from '../../src/validators/policy.ts'

/** Returns a suggestion for a mistake, if it is about a name that resembles a known one. */
export function suggestionFor(
  message: string,
  path: readonly (string | number)[],
  limits: readonly string[],
): string | undefined {
  const [, limit] = /unknown limit (\S+)$/.exec(message) ?? []
  if (limit !== undefined) {
    const meant = nearestTo(limit, limits)
    return meant === undefined ? `define it: limits.${limit}` : `did you mean "${meant}"?`
  }
  const [, field] = /Unrecognized key: "([^"]+)"/.exec(message) ?? []
  const meant = field === undefined ? undefined : nearestTo(field, fieldsAt(path))
  return meant === undefined ? undefined : `did you mean "${meant}"?`
}

/** Returns the fields of an object in the policy. */
function fieldsAt(path: readonly (string | number)[]): readonly string[] {
  let schema: $ZodType | undefined = policySchema
  for (const part of path) {
    const { shape, element, valueType } = partsOf(schema)
    schema = shape === undefined ? (element ?? valueType) : shape[part]
    if (schema === undefined) return []
  }
  return Object.keys(partsOf(schema).shape ?? {})
}

interface Parts {
  readonly shape?: Readonly<Record<string, $ZodType>>
  readonly element?: $ZodType
  readonly valueType?: $ZodType
  readonly innerType?: $ZodType
  readonly out?: $ZodType
}

/** Returns the parts of a schema behind `optional` and `pipe`. */
function partsOf(schema: $ZodType): Parts {
  const parts = schema._zod.def as Parts
  const inner = parts.innerType ?? parts.out
  return inner === undefined ? parts : partsOf(inner)
}
