/** Findings: why an input does not match its schema, as the caller receives it. */
import type { InputError } from '../problems/reasons.ts'
import * as z from './zod.ts'

/** Without a limit, an invalid body with a million keys would produce a million findings. */
export const MAX_FINDINGS = 20

const NONE: readonly InputError[] = []

/**
 * Returns why `value` does not match `schema`: at most 20 paths and rules, never the values. `at`
 * is the JSON Pointer of `value` within the input.
 */
export function findingsOf(
  where: InputError['in'],
  schema: z.core.$ZodType,
  value: unknown,
  at = '',
): readonly InputError[] {
  const parsed = z.safeParse(schema, value)
  if (parsed.success) return NONE
  return parsed.error.issues
    .slice(0, MAX_FINDINGS)
    .map((issue) => ({ in: where, path: at + pointer(issue.path), message: messageOf(issue) }))
}

/** zod's message for unknown keys quotes them. A response must not repeat the caller's input. */
function messageOf(issue: z.core.$ZodIssue): string {
  return issue.code === 'unrecognized_keys' ? 'Unknown keys are not allowed' : issue.message
}

/** RFC 6901. */
export function pointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
