/** Cookies with a token: strict reading, removal, and protection against forged requests. */
import { Denied } from '../../errors.ts'
import type { Check } from '../../problems/checks.ts'

/** Headers by lower-case name; several fields of one name are joined. */
export type Received = ReadonlyMap<string, string>

/** The properties of a request that a check needs in addition to its headers. */
export type RequestLine = Pick<Request, 'method' | 'url'>

/**
 * Creates the reader of a cookie. It returns the text between `=` and `;`, and undefined without
 * the cookie. It throws `Denied` (`ambiguous_credentials`) if the cookie occurs
 * twice, or where only some servers see it: beside a comma, or with a space before `=`.
 */
export function createCookieReader(name: string): (received: Received) => string | undefined {
  const escaped = name.replaceAll(/[$*+.^|]/g, '\\$&')
  const occurrences = new RegExp(`(^|[;,])[ \\t]*${escaped}([ \\t]*)=([^;]*)`, 'g')
  return function read(received) {
    const header = received.get('cookie')
    if (header === undefined) return undefined
    const [found, ...others] = header.matchAll(occurrences)
    if (found === undefined) return undefined
    const [, separator, space, value = ''] = found
    // Platforms join several `Cookie` fields by commas, which no credential contains.
    const isJoined = separator === ',' || value.includes(',')
    if (others.length > 0 || isJoined || space !== '')
      throw new Denied({ code: 'ambiguous_credentials', check: 'cookie' })
    return value
  }
}

/**
 * Returns a `Cookie` header without these cookies and otherwise unchanged; undefined if it is empty.
 * Also removes a cookie behind whose value, after a comma, some servers would read one of these.
 */
export function withoutCookies(header: string, names: readonly string[]): string | undefined {
  if (names.length === 0) return header
  const isNamed = (pair: string) => pair.split(',').some((part) => isListed(nameOf(part), names))
  const kept = header.split(';').filter((pair) => !isNamed(pair))
  const text = kept.join(';').trimStart()
  return text === '' ? undefined : text
}

/** Reports whether a cookie is in a list of names. `login-*` is every name that begins so. */
export const isListed = (name: string, names: readonly string[]): boolean =>
  names.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one))

const nameOf = (pair: string): string => pair.split('=', 1).join().trim()

/** RFC 9110 section 9.2.1, without TRACE. A policy must not give them effects. */
const SAFE_METHODS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/** Which clients may send a cookie with unsafe methods and upgrades. */
export interface Pages {
  /** Origin of the gateway. Undefined: that of the request. */
  readonly ownOrigin: string | undefined
  /** Other origins with pages that may. */
  readonly others: readonly string[]
  /** Whether requests without `Sec-Fetch-Site` and `Origin` are accepted. No browser sends these. */
  readonly acceptsOtherClients: boolean
}

/**
 * Throws `Denied` (`cross_origin_request`) for a request with an unsafe method, or for an upgrade such
 * as a WebSocket, unless a page of an accepted origin sent it. Browsers send cookies with requests of
 * other pages too. `Sec-Fetch-Site` must be `same-origin`. Browsers omit it without TLS: then `Origin`
 * must be that of the gateway.
 */
export function refuseCrossOrigin(
  received: Received,
  { method, url }: RequestLine,
  { ownOrigin, others, acceptsOtherClients }: Pages,
): void {
  if (SAFE_METHODS.includes(method) && !received.has('upgrade')) return
  const origin = received.get('origin')
  if (origin !== undefined && others.includes(origin)) return
  const site = received.get('sec-fetch-site')
  if (site === 'same-origin') return
  if (site !== undefined) throw refused('sec_fetch_site')
  if (origin === undefined && acceptsOtherClients) return
  if (origin !== (ownOrigin ?? new URL(url).origin)) throw refused('origin')
}

const refused = (check: Check<'cross_origin_request'>) =>
  new Denied({ code: 'cross_origin_request', check })
