/** Request paths: found in a URL as it was sent, and refused where two readers could differ. */

/** Longest path, characters. Servers commonly stop at 8 KB for the whole request line. */
export const MAX_PATH_LENGTH = 8_192

/** Why a path has more than one reading; for the audit trail. */
export type PathCheck =
  | 'not_absolute'
  | 'too_long'
  | 'empty_segment'
  | 'dot_segment'
  | 'parameter'
  | 'character'
  | 'percent_encoding'
  | 'encoded_delimiter'
  | 'encoded_unreserved'
  | 'double_encoding'
  | 'utf8'
  | 'control'
  | 'look_alike'

/** Unreserved characters and single slashes (RFC 3986 section 2.3): most paths are no more. */
const PLAIN = /^(?:\/[A-Za-z0-9_~.-]+)+\/?$|^\/$/
/** A segment of dots only: `.` and `..` climb, and some file systems read `...` as `..`. */
const DOT_SEGMENT = /\/\.+(?:\/|$)/
/** What a path may hold literally: pchar (section 3.3) but `;`, and three that browsers leave. */
const LITERAL = /^[A-Za-z0-9_~.\-/!$&'()*+,=:@%[\]|]*$/
const BROKEN_PERCENT = /%(?![0-9A-Fa-f]{2})/
const ENCODED_DELIMITER = /%(?:2f|5c|3f|23|3b)/i
/** ALPHA, DIGIT and `-._~`, which are equivalent to themselves unencoded (section 6.2.2.2). */
const ENCODED_UNRESERVED = /%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)/i
/** A percent sign that a second decoder would take for the start of an escape. */
const DOUBLE_ENCODING = /%25(?:[0-9a-f]{2}|u)/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/
/** What a charset conversion can leave of a look-alike: a separator, an escape, only dots. */
const CONVERTED = /[/\\;\u2044\u2215\u2216\u29f5\u29f8\u29f9]|%[0-9a-f]{2}|^\.+$/i

/**
 * Tells why a path is ambiguous, or undefined for one that every server reads alike. `path` is the
 * raw path of a request, without its query. Takes time linear in its length, and one regular
 * expression or two for a path of unreserved characters.
 *
 * Nothing is repaired: a caller who means `/admin` can write `/admin`. Does NOT refuse a trailing
 * slash, another case, or a name in a script of its own; those are one name each, and the router
 * is exact.
 */
export function ambiguity(path: string): PathCheck | undefined {
  if (path.length > MAX_PATH_LENGTH) return 'too_long'
  if (PLAIN.test(path)) return DOT_SEGMENT.test(path) ? 'dot_segment' : undefined
  if (!path.startsWith('/')) return 'not_absolute'
  if (path.includes('//')) return 'empty_segment'
  if (path.includes(';')) return 'parameter'
  if (!LITERAL.test(path)) return 'character'
  if (DOT_SEGMENT.test(path)) return 'dot_segment'
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
  // Compatibility forms: U+FF0F and U+2100 hold a slash, U+FF0E and U+2025 dots.
  return decoded.split('/').some((segment) => CONVERTED.test(segment.normalize('NFKC')))
    ? 'look_alike'
    : undefined
}

/**
 * The origin-form target of an absolute URL, exactly as it stands there: path and query, without
 * a fragment. Empty where the authority is not followed by a path.
 */
export function targetOf(url: string): string {
  const start = pathStart(url)
  const fragment = url.indexOf('#', start)
  return fragment < 0 ? url.slice(start) : url.slice(start, fragment)
}

/** The path of an absolute URL, exactly as it stands there; see {@link targetOf}. */
export function pathOf(url: string): string {
  const start = pathStart(url)
  const query = url.indexOf('?', start)
  const fragment = url.indexOf('#', start)
  const end = query < 0 ? fragment : fragment < 0 ? query : Math.min(query, fragment)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}

/** Scheme and a plain authority. A `Host` such as `a/b?c` would move where the path begins. */
const AUTHORITY = /^https?:\/\/[\w.~:[\]-]+(?=\/)/i

function pathStart(url: string): number {
  return AUTHORITY.exec(url)?.[0].length ?? url.length
}
