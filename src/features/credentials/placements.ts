/** Where a fixed secret stands in a request. */
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
 * this one do not reach the origin. The origin may repeat the query in a redirect, so the value is removed from the
 * header fields of responses that have URLs.
 */
export function createQueryCredential(name: string, value: string): Credential {
  const own = new URLSearchParams([[name, value]]).toString()
  const sent = new RegExp(`((?:^|[?&;])${escaped(name)}=)[^&#;>"'\\s]*`, 'gi')
  return {
    header: undefined,
    apply: async (request) => ({
      ...request,
      target: withParameter(targetBelow(request), name, own),
    }),
    clean({ headers }) {
      for (const field of WITH_URLS) {
        const text = headers.get(field)
        const clean = text?.replace(sent, '$1')
        if (clean !== undefined && clean !== text) headers.set(field, clean)
      }
    },
  }
}

const WITH_URLS = ['location', 'content-location', 'link', 'refresh']

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
