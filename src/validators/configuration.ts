/** Parses a part of the configuration. */

import * as z from 'zod/mini'
import { Misconfigured } from '../errors.ts'
import type { Mistake } from '../problems/mistake.ts'
import { inEnglish } from './english.ts'

/**
 * Returns the parsed value. Throws one {@link Misconfigured} that names every mistake and its place
 * below `at`. The message never contains values, because some of them are secrets.
 */
export function parseConfiguration<Schema extends z.core.$ZodType>(
  what: 'The policy' | 'The environment' | 'The options of portcullis()' | 'The options of redis()',
  schema: Schema,
  value: unknown,
  at: Mistake['path'] = [],
): z.core.output<Schema> {
  const parsed = z.safeParse(schema, value, inEnglish())
  if (parsed.success) return parsed.data
  throw new Misconfigured(
    what,
    parsed.error.issues.map((issue) => mistakeOf(issue, at)),
  )
}

/** Returns why `value` does not match the schema. */
export function issuesOf(schema: z.core.$ZodType, value: unknown): readonly z.core.$ZodIssue[] {
  return z.safeParse(schema, value, inEnglish()).error?.issues ?? []
}

/** Returns the issue of a schema as a mistake below `at`. */
export function mistakeOf(issue: z.core.$ZodIssue, at: Mistake['path'] = []): Mistake {
  const path = [...at, ...issue.path].map((part) =>
    typeof part === 'number' ? part : String(part),
  )
  return {
    code: issue.code === 'custom' ? 'invalid_value' : issue.code,
    path,
    message: issue.message,
    ...(issue.code === 'unrecognized_keys' && { given: issue.keys[0] ?? '' }),
    ...(issue.code === 'invalid_value' && { known: issue.values.map(String) }),
  }
}
