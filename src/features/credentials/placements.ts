/** The place of a fixed secret in a request. */
import { withBody } from '../../http/replaced-response.ts'
import { targetBelow } from '../../origin/origin.ts'
import type { Credential } from './authorized-origin.ts'

/** Creates the credential that is the value of a header, by its lower-case name. */
export const createHeaderCredential = (name: string, value: string): Credential => ({
  header: name,
  apply: async (request) => ({
    ...request,
    headers: new Map(request.headers).set(name, value),
  }),
})

/**
 * Creates the credential that is a parameter of the query. Parameters of the caller that a server could read as
 * this one do not reach the origin. The origin may repeat the query in a redirect or in a cookie, as it was sent,
 * decoded or encoded again, so the value is removed from the header fields of responses. A redirect has no body:
 * servers write the URL into it.
 */
export function createQueryCredential(name: string, value: string): Credential {
  const own = new URLSearchParams([[name, value]]).toString()
  const sent = new RegExp(`((?:^|[?&;])${escaped(name)}=)[^&#;>"'\\s]*`, 'gi')
  const repeated = new RegExp([...value].map(anyFormOf).join(''), 'gi')
  return {
    header: undefined,
    apply: async (request) => ({
      ...request,
      target: withParameter(targetBelow(request), name, own),
    }),
    clean(response) {
      const { headers, status, body } = response
      const cookies = headers.getSetCookie()
      for (const [field, text] of [...headers]) {
        if (field === 'set-cookie' || OF_BODY.test(field)) continue
        const clean = text.replace(repeated, '')
        if (clean !== text) headers.set(field, clean)
      }
      if (cookies.some((text) => text.search(repeated) >= 0)) {
        headers.delete('set-cookie')
        for (const text of cookies) headers.append('set-cookie', text.replace(repeated, ''))
      }
      for (const field of WITH_URLS) {
        const text = headers.get(field)
        const clean = text?.replace(sent, '$1')
        if (clean !== undefined && clean !== text) headers.set(field, clean)
      }
      const isRedirect = headers.has('location') && status >= 300 && status < 400
      if (!isRedirect || body === null) return response
      body.cancel().catch(() => {})
      return withBody(response, null)
    },
  }
}

const WITH_URLS = ['location', 'content-location', 'link', 'refresh']

/** Returns the pattern of a character: itself, with a backslash, or with any number of percent-encodings. */
function anyFormOf(character: string): string {
  const bytes = [...new TextEncoder().encode(character)]
  const encoded = bytes.map((byte) => `%(?:25)*${byte.toString(16).padStart(2, '0')}`).join('')
  const itself = character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&')
  return `(?:\\\\?${itself}|${encoded}${character === ' ' ? '|\\+|%(?:25)*2b' : ''})`
}

/** No origin repeats a query in these, and a body cannot be read without them. */
const OF_BODY = /^content-(?:length|type|encoding)$/

const escaped = (name: string): string => name.replace(/[.-]/g, '\\$&')

/** Replaces the parameter in a path with its query, which stay as they were sent otherwise. */
function withParameter(target: string, name: string, own: string): string {
  const at = target.indexOf('?')
  if (at < 0) return `${target}?${own}`
  // Some servers separate parameters by semicolons as well.
  const kept = target
    .slice(at + 1)
    .split('&')
    .map((part) => (part.split(';').some((one) => isNamed(one, name)) ? '' : part))
    .filter((part) => part !== '')
  return `${target.slice(0, at)}?${[...kept, own].join('&')}`
}

/**
 * Reports whether a server could read a parameter as the one of this name. Servers differ in the case of
 * names, in brackets, which make lists, and in characters that they replace by an underscore.
 */
function isNamed(parameter: string, name: string): boolean {
  const [key = ''] = parameter.split('=', 1)
  return plain(decoded(key)) === plain(name)
}

const plain = (name: string): string =>
  name
    .replace(/[[\0].*$/s, '')
    .trim()
    .replace(/[. ]/g, '_')
    .toLowerCase()

function decoded(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}
