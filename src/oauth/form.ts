/** Parameters of a request to `/oauth/*`: `application/x-www-form-urlencoded`, read in one way only. */
import { oauthRefused } from '../tokens/oauth-refusal.ts'

/** May stand there several times: RFC 8707 section 2, RFC 8693 section 2.1. */
const REPEATABLE = new Set(['resource', 'audience'])
/** RFC 6749 appendix A allows nothing below a space in any parameter of ours. */
const CONTROL = /\p{Cc}/u

/** The parameters that have a value; one without a value counts as absent (RFC 6749 section 3.2). */
export interface OAuthForm {
  /** The value of a parameter that may stand there once. */
  one(name: string): string | undefined
  /** The values of `resource` or `audience`, in their order. */
  all(name: 'resource' | 'audience'): readonly string[]
}

/**
 * Reads a form. Throws `Denied` (`invalid_request`) for a parameter that stands there twice, known or
 * not (RFC 6749 section 3.2), and for what does not decode to printable text: others might read it
 * otherwise. Parameters that nobody asks for are ignored, as the RFC wants it.
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

/** Undoes form encoding (WHATWG URL section 5.1); undefined for what is not well-formed UTF-8. */
export function decodeFormText(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
