/** Parses a part of the configuration. */

import * as z from 'zod/mini'
import { toDotPath } from 'zod/v4/core'
import { Misconfigured } from '../errors.ts'
import { inEnglish } from './english.ts'

/**
 * Returns the parsed value. Throws one {@link Misconfigured} that names every mistake and its place
 * below `at`. The message never contains values, because some of them are secrets.
 */
export function configured<Schema extends z.core.$ZodType>(
  what: 'The policy' | 'The environment' | 'The options of portcullis()',
  schema: Schema,
  value: unknown,
  at: readonly string[] = [],
): z.core.output<Schema> {
  const parsed = z.safeParse(schema, value, inEnglish())
  if (parsed.success) return parsed.data
  const mistakes = parsed.error.issues.map(({ path, message }) => {
    const place = toDotPath([...at, ...path])
    return place === '' ? message : `${place}: ${message}`
  })
  throw new Misconfigured(what, mistakes)
}
