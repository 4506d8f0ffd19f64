/** JSON bodies: one reading, of a sane size, without names that are traps. */
import { JsonRefused, parseStrictJson } from '../validators/json.ts'
import type { InspectionLimits } from './definition.ts'
import type { TextTaker } from './signatures/text-taker.ts'
import { malformed, refuseLine, refusePrototypeName, refuseText } from './text.ts'

/**
 * Parses a JSON text. Throws `Denied` (`request_malformed`) for one that is not JSON or is nested
 * too deeply, for a name that stands twice in its object or is one of an object's prototype, for
 * too many names and too long strings, and for control characters other than tab, LF and CR.
 *
 * Names and strings are handed to `texts` once they are sound.
 *
 * Does NOT bound the number of elements of arrays: the route's `maxBodyBytes` does.
 */
export function inspectJson(text: string, limits: InspectionLimits, texts?: TextTaker): unknown {
  const { maxNames, maxStringChars } = limits
  const value = parsed(text, limits.maxDepth)
  let names = 0

  /** Recurses no deeper than `maxDepth`. */
  function visit(part: unknown): void {
    if (typeof part === 'string') {
      if (part.length > maxStringChars) throw malformed('body', 'length')
      refuseText(part, 'body')
      texts?.take(part)
    } else if (Array.isArray(part)) {
      for (const element of part) visit(element)
    } else if (typeof part === 'object' && part !== null) {
      for (const [name, member] of Object.entries(part)) {
        names += 1
        if (names > maxNames) throw malformed('body', 'names')
        if (name.length > maxStringChars) throw malformed('body', 'length')
        refuseLine(name, 'body')
        refusePrototypeName(name, 'body')
        texts?.take(name)
        visit(member)
      }
    }
  }
  visit(value)
  return value
}

function parsed(text: string, maxDepth: number): unknown {
  try {
    return parseStrictJson(text, { maxDepth })
  } catch (error) {
    if (!(error instanceof JsonRefused)) throw error
    throw malformed('body', error.check)
  }
}
