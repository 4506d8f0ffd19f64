import { Denied } from '../errors.ts'
import { findInexact } from '../http/exact-numbers.ts'
import { JsonRefused, parseStrictJson } from '../http/strict-json.ts'
import type { RequestScan } from './judge.ts'
import type { InspectionLimits } from './limits.ts'
import { malformed, refuseLine, refusePrototypeName, refuseText } from './text.ts'

/**
 * Parses a JSON text. Throws `Denied` (`malformed_request`) for:
 * - text that is not JSON, or is nested too deeply
 * - a name that is repeated in its object or belongs to an object's prototype
 * - too many names, or too long strings
 * - control characters other than tab, LF and CR, and lone surrogates
 *
 * Adds the names and strings that pass to `scan`.
 *
 * Does NOT bound the number of array elements: the route's `maxBodyBytes` does.
 */
export function inspectJson(text: string, limits: InspectionLimits, scan?: RequestScan): unknown {
  const { maxNames, maxStringChars } = limits
  const value = parsed(text, limits.maxDepth)
  let names = 0

  /** Recurses no deeper than `maxDepth`. */
  function visit(part: unknown): void {
    if (typeof part === 'string') {
      if (part.length > maxStringChars) throw malformed('body', 'length')
      refuseText(part, 'body')
      scan?.add(part)
    } else if (Array.isArray(part)) {
      for (const element of part) visit(element)
    } else if (typeof part === 'object' && part !== null) {
      for (const [name, member] of Object.entries(part)) {
        names += 1
        if (names > maxNames) throw malformed('body', 'names')
        if (name.length > maxStringChars) throw malformed('body', 'length')
        refuseLine(name, 'body')
        refusePrototypeName(name, 'body')
        scan?.add(name)
        visit(member)
      }
    }
  }
  visit(value)
  return value
}

function parsed(text: string, maxDepth: number): unknown {
  try {
    const value = parseStrictJson(text, { maxDepth })
    findInexact(text, value)
    return value
  } catch (error) {
    if (!(error instanceof JsonRefused)) throw error
    throw new Denied({ code: 'malformed_request', check: `body_${error.check}` })
  }
}
