/** Suggests the word that was probably meant. */
import type { $ZodType } from 'zod/v4/core'
import { parametersOf } from '../../src/http/path-pattern.ts'
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'
import { policySchema } from '../../src/validators/policy.ts'

/** Returns a suggestion for a mistake, if it is about a name that resembles a known one. */
export function suggestionFor(
  message: string,
  path: readonly (string | number)[],
  limits: readonly string[],
): string | undefined {
  const [, limit] = /unknown limit (\S+)$/.exec(message) ?? []
  if (limit !== undefined) {
    return didYouMean(limit, limits) ?? `define it: limits.${limit}`
  }
  const listed = nameAndNames(message)
  if (listed !== undefined) return didYouMean(...listed)
  const [, field] = /Unrecognized key: "([^"]+)"/.exec(message) ?? []
  return field === undefined ? undefined : didYouMean(field, fieldsAt(path))
}

/** Messages about an unknown name. Either they list the known names, or they begin with the route. */
const LISTED = [
  /the model has no type (?<given>\S+); it has (?<names>.+)$/,
  /the model has no relation [^#]+#(?<given>\S+); it has (?<names>.+)$/,
  /unknown plan (?<given>\S+); the plans are (?<names>.+)$/,
]
const PARAMETER =
  /^[A-Z]+ (?<path>\S+): .*(?:names \{params\.(?<given>\w+)\}|has no parameter :(?<parameter>\w+))/

/** Returns the unknown name in a message, and the known ones. */
function nameAndNames(message: string): readonly [string, readonly string[]] | undefined {
  for (const pattern of LISTED) {
    const { given, names } = pattern.exec(message)?.groups ?? {}
    if (given !== undefined && names !== undefined) return [given, names.split(', ')]
  }
  const { path, given, parameter } = PARAMETER.exec(message)?.groups ?? {}
  const unknown = given ?? parameter
  return path === undefined || unknown === undefined ? undefined : [unknown, parametersOf(path)]
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
