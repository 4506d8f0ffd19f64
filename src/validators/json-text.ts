/** Parses JSON in an environment variable. */
import * as z from 'zod'
import { JsonRefused, parseStrictJson } from './json.ts'

/** Deeper than any configuration. */
const MAX_DEPTH = 16

/** Parses strict JSON, which has no duplicate member names. */
export const json = z.string().transform((text, context) => {
  try {
    return parseStrictJson(text, { maxDepth: MAX_DEPTH })
  } catch (error) {
    const twice = error instanceof JsonRefused && error.check === 'duplicate_name'
    context.addIssue(twice ? 'has a member name twice' : 'is not JSON')
    return z.NEVER
  }
})
