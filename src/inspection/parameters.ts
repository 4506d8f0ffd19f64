import type { ParametersSeen } from './judge.ts'
import type { InspectionLimits } from './limits.ts'
import { malformed, refuseLine, refusePrototypeStep, refuseText, type Where } from './text.ts'

/** Characters that encode others. */
const ENCODED = /[%+]/

/**
 * Checks the parameters of a query (without its `?`) or of a form. Throws `Denied`
 * (`malformed_request`) for:
 * - broken percent-encoding, and octets that are not UTF-8 (including overlong forms and
 *   surrogates)
 * - control characters
 * - repeated names, because origins differ in which value they use
 * - names of an object's prototype
 * - too many or too long parameters
 *
 * Values of a form may contain tab, LF and CR; values of a query may not.
 *
 * Adds to `seen`: with one object for query and form, neither can shadow the other. Does NOT treat
 * `;` as a separator, and does not decode twice: `%2541` is the text `%41`.
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
    addName(name, where, limits, seen)
    seen.scan?.add(value)
  }
}

/** Adds a name to `seen`. Throws `Denied` if it is one too many, or repeated. */
export function addName(
  name: string,
  where: Where,
  limits: InspectionLimits,
  seen: ParametersSeen,
): void {
  seen.count += 1
  if (seen.count > limits.maxNames) throw malformed(where, 'names')
  if (seen.names.has(name) && !limits.repeatable.includes(name)) throw malformed(where, 'repeated')
  seen.names.add(name)
  seen.scan?.add(name)
}

function decoded(text: string, where: Where): string {
  if (!ENCODED.test(text)) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw malformed(where, 'encoding')
  }
}
