/** JSON that stands in a variable. */
import * as z from 'zod'
import { JsonRefused, parseStrictJson } from './json.ts'

/** More than any configuration has. */
const MAX_DEPTH = 16

/** The value of a text of strict JSON: no member name twice. */
export const json = z.string().transform((text, context) => {
  try {
    return parseStrictJson(text, { maxDepth: MAX_DEPTH })
  } catch (error) {
    const twice = error instanceof JsonRefused && error.check === 'duplicate_name'
    context.addIssue(twice ? 'has a member name twice' : 'is not JSON')
    return z.NEVER
  }
})
