/** The mistakes that `definePolicy` reports, as findings. */
import type { $ZodType } from 'zod/v4/core'
import { type Mistake, textOf } from '../../src/problems/mistake.ts'
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'
import { issuers } from '../../src/validators/issuer.ts'
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

/** Returns the message of a `Misconfigured` with a suggestion behind each mistake that has one. */
export function withSuggestions(message: string, mistakes: readonly Mistake[]): string {
  const [title = '', ...lines] = message.split('\n')
  if (lines.length !== mistakes.length) return message
  const suggestions = findingsOf(mistakes).map(({ suggestion }) => suggestion)
  const suggested = lines.map((line, at) => [line, suggestions[at]].filter(Boolean).join('; '))
  return [title, ...suggested].join('\n')
}

/** Adds the fields that are possible in the place of an unknown one. */
const withFields = (mistake: Mistake): Mistake =>
  mistake.code === 'unrecognized_keys' ? { ...mistake, known: fieldsAt(mistake.path) } : mistake

function suggestionFor({ code, given, known = [] }: Mistake): string | undefined {
  if (given === undefined) return undefined
  const orElse = code === 'unknown_limit' ? `define it: limits.${given}` : undefined
  return didYouMean(given, known) ?? orElse
}

/** Returns the fields of an object in the policy, or in the variable `ISSUERS`. */
function fieldsAt([first, ...rest]: Mistake['path']): readonly string[] {
  const isVariable = first === 'ISSUERS'
  let schema: $ZodType | undefined = isVariable ? issuers : policySchema
  for (const part of isVariable || first === undefined ? rest : [first, ...rest]) {
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
  readonly in?: $ZodType
  readonly out?: $ZodType
}

/** Returns the parts of a schema behind `optional` and `pipe`. */
function partsOf(schema: $ZodType): Parts {
  const parts = schema._zod.def as Parts
  const converts = parts.out?._zod.def.type === 'transform'
  const inner = parts.innerType ?? (converts ? parts.in : parts.out)
  return inner === undefined ? parts : partsOf(inner)
}
