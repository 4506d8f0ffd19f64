/** Queries and forms (`application/x-www-form-urlencoded`): one value a name, one decoding. */
import type { InspectionLimits } from './definition.ts'
import type { TextTaker } from './signatures/text-taker.ts'
import { malformed, refuseLine, refusePrototypeStep, refuseText, type Where } from './text.ts'

/** Characters that mean something else than themselves. */
const ENCODED = /[%+]/

/** The parameters of a request so far, whether of its query or of its form. */
export interface ParametersSeen {
  readonly names: Set<string>
  count: number
  /** Is handed names and values once they are sound. */
  readonly texts?: TextTaker | undefined
}

/**
 * Checks the parameters of a query (without its `?`) or of a form. Throws `Denied`
 * (`request_malformed`) for broken percent-encoding and octets that are not UTF-8 (overlong forms
 * and surrogates are not), for control characters, a name that stands twice (origins differ in
 * which one they take) or leads to an object's prototype, and for too many or too long parameters.
 * A form's values may have tab, LF and CR; a query's may not.
 *
 * `seen` is added to: with one object for query and form, neither can shadow the other. Does NOT
 * take `;` for a separator, and does not decode twice: `%2541` is the text `%41`.
 */
export function inspectParameters(
  text: string,
  where: Where,
  limits: InspectionLimits,
  seen: ParametersSeen,
): void {
  if (text === '') return
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decoded(equals === -1 ? pair : pair.slice(0, equals), where)
    const value = equals === -1 ? '' : decoded(pair.slice(equals + 1), where)
    if (name.length > limits.maxStringChars || value.length > limits.maxStringChars)
      throw malformed(where, 'length')
    refuseLine(name, where)
    refusePrototypeStep(name, where)
    if (where === 'query') refuseLine(value, where)
    else refuseText(value, where)
    seen.count += 1
    if (seen.count > limits.maxNames) throw malformed(where, 'names')
    if (seen.names.has(name) && !limits.repeatable.includes(name))
      throw malformed(where, 'repeated')
    seen.names.add(name)
    seen.texts?.take(name)
    seen.texts?.take(value)
  }
}

/** The text that percent-encoding and `+` stand for. */
function decoded(text: string, where: Where): string {
  if (!ENCODED.test(text)) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw malformed(where, 'encoding')
  }
}
