/** The path of a URL as it was sent, and why servers could read it differently. */
import type { PathCheck } from '../problems/checks.ts'

/** In characters. Servers commonly limit the request line to 8 KB. */
const MAX_PATH_LENGTH = 8_192

/** Unreserved characters and single slashes (RFC 3986 section 2.3). Most paths match. */
const PLAIN = /^(?:\/[A-Za-z0-9_~.-]+)+\/?$|^\/$/
/** Servers resolve `.` and `..`; some file systems read `...` as `..`. */
const DOT_SEGMENT = /\/\.+(?:\/|$)/
/** Some servers read plus signs as spaces, and remove spaces. */
const BLANK_SEGMENT = /\/[.+]+(?:\/|$)/
/** The same in a decoded segment, with all invisible characters. */
const BLANK = /^[\s.+\p{Cf}\p{DI}]+$/u
/** `/(S(id))/`, a session without cookies: ASP.NET removes it from any part of a path. */
const COOKIELESS = /\/\([a-z]\(/i
/** pchar (section 3.3) without `;`, and `[`, `]`, `|`, which browsers send as is. */
const LITERAL = /^[A-Za-z0-9_~.\-/!$&'()*+,=:@%[\]|]*$/
const BROKEN_PERCENT = /%(?![0-9A-Fa-f]{2})/
const ENCODED_DELIMITER = /%(?:2f|5c|3f|23|3b)/i
/** Encoded ALPHA, DIGIT and `-._~`, equivalent to the plain characters (section 6.2.2.2). */
const ENCODED_UNRESERVED = /%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)/i
const DOUBLE_ENCODING = /%25(?:[0-9a-f]{2}|u)/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/
/** Results of a charset conversion of look-alikes: a separator, an escape, or only dots. */
const CONVERTED = /[/\\;\u2044\u2215\u2216\u29f5\u29f8\u29f9]|%[0-9a-f]{2}|^\.+$/i

/**
 * Returns why servers could split a raw path into different segments, or undefined. Takes time
 * linear in its length, and one or two regular expressions for a path of unreserved characters.
 *
 * Ambiguous paths are not repaired: a caller can send `/admin` if it means `/admin`. Does NOT
 * report a trailing slash, a different case, an extension, or a name in any script: clients need
 * them, and only the other routes determine whether they are ambiguous (see `readsAs`).
 */
export function ambiguity(path: string): PathCheck | undefined {
  if (path.length > MAX_PATH_LENGTH) return 'too_long'
  if (PLAIN.test(path)) return DOT_SEGMENT.test(path) ? 'dot_segment' : undefined
  if (!path.startsWith('/')) return 'not_absolute'
  if (path.includes('//')) return 'empty_segment'
  if (path.includes(';') || COOKIELESS.test(path)) return 'parameter'
  if (!LITERAL.test(path)) return 'character'
  if (DOT_SEGMENT.test(path)) return 'dot_segment'
  if (BLANK_SEGMENT.test(path)) return 'blank_segment'
  return path.includes('%') ? ambiguityOfEscapes(path) : undefined
}

function ambiguityOfEscapes(path: string): PathCheck | undefined {
  if (BROKEN_PERCENT.test(path)) return 'percent_encoding'
  if (DOUBLE_ENCODING.test(path)) return 'double_encoding'
  if (ENCODED_DELIMITER.test(path)) return 'encoded_delimiter'
  if (ENCODED_UNRESERVED.test(path)) return 'encoded_unreserved'
  let decoded: string
  try {
    decoded = decodeURIComponent(path)
  } catch {
    return 'utf8'
  }
  if (CONTROL.test(decoded)) return 'control'
  if (COOKIELESS.test(decoded)) return 'parameter'
  const segments = decoded.split('/')
  if (segments.some((segment) => BLANK.test(segment))) return 'blank_segment'
  // Compatibility forms: U+FF0F and U+2100 contain a slash, U+FF0E and U+2025 dots.
  return segments.some((segment) => CONVERTED.test(segment.normalize('NFKC')))
    ? 'look_alike'
    : undefined
}

/** Returns path and query of an absolute URL, unchanged. Empty if no path follows the authority. */
export function targetOf(url: string): string {
  const start = pathStart(url)
  const fragment = url.indexOf('#', start)
  return fragment < 0 ? url.slice(start) : url.slice(start, fragment)
}

/** As {@link targetOf}, without the query. */
export function pathOf(url: string): string {
  const start = pathStart(url)
  const query = url.indexOf('?', start)
  const fragment = url.indexOf('#', start)
  const end = query < 0 ? fragment : fragment < 0 ? query : Math.min(query, fragment)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}

/** Scheme and a plain authority. A `Host` such as `a/b?c` would change where the path begins. */
const AUTHORITY = /^https?:\/\/[\w.~:[\]-]+(?=\/)/i

function pathStart(url: string): number {
  return AUTHORITY.exec(url)?.[0].length ?? url.length
}
