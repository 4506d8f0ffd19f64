/** Parses a part of the configuration. */
import { toDotPath } from 'zod/v4/core'
import { Misconfigured } from '../errors.ts'
import * as z from './zod.ts'

/**
 * Returns the parsed value. Throws one {@link Misconfigured} that names every mistake and its place
 * below `at`. The message never contains values, because some of them are secrets.
 */
export function configured<Schema extends z.core.$ZodType>(
  what: 'The policy' | 'The environment',
  schema: Schema,
  value: unknown,
  at: readonly string[] = [],
): z.core.output<Schema> {
  const parsed = z.safeParse(schema, value)
  if (parsed.success) return parsed.data
  const mistakes = parsed.error.issues.map(
    ({ path, message }) => `${toDotPath([...at, ...path])}: ${message}`,
  )
  throw new Misconfigured(what, mistakes)
}
