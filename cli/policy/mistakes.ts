/** The mistakes that `definePolicy` reports, as findings. */
import type { $ZodType } from 'zod/v4/core'
import { type Mistake, textOf } from '../../src/problems/mistake.ts'
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'
import { policySchema } from '../../src/validators/policy.ts'
import type { Finding } from './finding.ts'

const INVALID = 'invalid-policy'

/** Returns one finding for each mistake. */
export const findingsOf = (mistakes: readonly Mistake[]): Finding[] =>
  mistakes.map((mistake) => {
    const complete = withFields(mistake)
    const message = textOf(mistake)
    const suggestion = suggestionFor(complete)
    return {
      rule: INVALID,
      severity: 'error',
      ...complete,
      message,
      // Some messages have it already.
      ...(suggestion !== undefined && !message.endsWith(suggestion) && { suggestion }),
    }
  })

/** Adds the fields that are possible in the place of an unknown one. */
const withFields = (mistake: Mistake): Mistake =>
  mistake.code === 'unrecognized_keys' ? { ...mistake, known: fieldsAt(mistake.path) } : mistake

function suggestionFor({ code, given, known = [] }: Mistake): string | undefined {
  if (given === undefined) return undefined
  const orElse = code === 'unknown_limit' ? `define it: limits.${given}` : undefined
  return didYouMean(given, known) ?? orElse
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
