/** From zod's issues to what a caller is told of them. */
import type * as z from 'zod'
import type { InputError } from '../errors.ts'

/** A wrong body of a million keys would otherwise be answered with a million findings. */
export const MAX_FINDINGS = 20

const NONE: readonly InputError[] = []

/**
 * Why `value` does not match `schema`: places and rules, never what stands there, 20 of them at
 * most; empty if it does. `at` is the JSON Pointer of `value` within the input.
 */
export function findingsOf(
  where: InputError['in'],
  schema: z.core.$ZodType,
  value: unknown,
  at = '',
): readonly InputError[] {
  const parsed = (schema as z.ZodType).safeParse(value)
  if (parsed.success) return NONE
  return parsed.error.issues
    .slice(0, MAX_FINDINGS)
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
