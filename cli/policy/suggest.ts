/** Suggests the word that was probably meant. */
import type { $ZodType } from 'zod/v4/core'
import { policySchema } from '../../src/validators/policy.ts'

const MAX_DISTANCE = 2

/** Returns a suggestion for a mistake, if it is about a name that resembles a known one. */
export function suggestionFor(
  message: string,
  path: readonly (string | number)[],
  limits: readonly string[],
): string | undefined {
  const [, limit] = /unknown limit (\S+)$/.exec(message) ?? []
  if (limit !== undefined) {
    const meant = closest(limit, limits)
    return meant === undefined ? `define it: limits.${limit}` : `did you mean "${meant}"?`
  }
  const [, field] = /Unrecognized key: "([^"]+)"/.exec(message) ?? []
  const meant = field === undefined ? undefined : closest(field, fieldsAt(path))
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

function closest(word: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((name) => ({ name, steps: distance(word.toLowerCase(), name.toLowerCase()) }))
    .filter(({ steps }) => steps <= MAX_DISTANCE)
    .sort((one, another) => one.steps - another.steps)
  return best?.name
}

/** Returns how many insertions, deletions and replacements turn one word into the other. */
function distance(one: string, another: string): number {
  let row = Array.from({ length: another.length + 1 }, (_, index) => index)
  for (const [index, char] of [...one].entries()) {
    const next = [index + 1]
    for (const [at, other] of [...another].entries()) {
      const replaced = (row[at] ?? 0) + (char === other ? 0 : 1)
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
