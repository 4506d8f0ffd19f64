/** Parses the parameters of a request to `/oauth/*`: strict `application/x-www-form-urlencoded`. */
import { oauthRefused } from '../../access/tokens/rejection.ts'

/** Parameters that may be repeated: RFC 8707 section 2, RFC 8693 section 2.1. */
const REPEATABLE = new Set(['resource', 'audience'])
/** RFC 6749 appendix A allows no control characters in these parameters. */
const CONTROL = /\p{Cc}/u

/** The parameters. One without a value counts as absent (RFC 6749 section 3.2). */
export interface OAuthForm {
  one(name: string): string | undefined
  all(name: 'resource' | 'audience'): readonly string[]
}

/**
 * Parses a form. Throws `Denied` (`invalid_request`) for a repeated parameter, known or not (RFC
 * 6749 section 3.2). Throws the same for names or values that do not decode to text without control
 * characters: other servers might read them differently. Unknown parameters are ignored, as the RFC
 * requires.
 */
export function parseForm(text: string): OAuthForm {
  const values = new Map<string, string[]>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = decodeFormText(at === -1 ? pair : pair.slice(0, at))
    const value = at === -1 ? '' : decodeFormText(pair.slice(at + 1))
    if (name === undefined || value === undefined || CONTROL.test(name + value))
      throw oauthRefused('invalid_request', 'form_encoding')
    const known = values.get(name)
    if (known === undefined) values.set(name, [value])
    else if (REPEATABLE.has(name)) known.push(value)
    else throw oauthRefused('invalid_request', 'parameter_twice')
  }
  return {
    one: (name) => values.get(name)?.[0] || undefined,
    all: (name) => values.get(name)?.filter((value) => value !== '') ?? [],
  }
}

/** Decodes form-encoded text. Returns undefined if it is not well-formed UTF-8. */
export function decodeFormText(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
