/** From zod's issues to what a caller is told of them. */
import type * as z from 'zod'
import type { InputError } from '../errors.ts'

/** A wrong body of a million keys would otherwise be answered with a million findings. */
export const MAX_FINDINGS = 20

export interface FindingsOptions {
  /** JSON Pointer of `value` within the input. Default empty: it is all of it. */
  readonly at?: string
  /** How many there may still be. Default 20. */
  readonly max?: number
}

/**
 * Why `value` does not match `schema`: places and rules, never what stands there; empty if it does.
 */
export function findingsOf(
  where: InputError['in'],
  schema: z.core.$ZodType,
  value: unknown,
  { at = '', max = MAX_FINDINGS }: FindingsOptions = {},
): readonly InputError[] {
  const parsed = (schema as z.ZodType).safeParse(value)
  if (parsed.success) return []
  return parsed.error.issues
    .slice(0, max)
    .map((issue) => ({ in: where, path: at + pointer(issue.path), message: messageOf(issue) }))
}

/** zod quotes unknown keys in its message; what a caller sent does not come back. */
function messageOf(issue: z.core.$ZodIssue): string {
  return issue.code === 'unrecognized_keys' ? 'Unknown keys are not allowed' : issue.message
}

/** JSON Pointer (RFC 6901). */
export function pointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
