/**
 * The normal form of the URIs of resources (RFC 3986 section 6.2). A server may read a URI in another
 * way than a table of prefixes: decode it, resolve it, or split it. Each URI therefore has one
 * spelling here, and all others are refused.
 */

/** Longer ones are refused. */
const MAX_URI_CHARS = 8_192
const URI = /^([a-z][a-z\d+.-]*):(?:\/\/([^/?#]*)(?=[/?#]|$))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/
/** RFC 3986 `pchar` and `/`, and `?` behind the path. */
const PATH = /^(?:[\w.~!$&'()*+,;=:@/-]|%[\dA-F]{2})*$/
const BEHIND = /^(?:[\w.~!$&'()*+,;=:@/?-]|%[\dA-F]{2})*$/
const AUTHORITY =
  /^(?:\[[\da-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\dA-F]{2})*(?<!\.))(?::[1-9]\d{0,4})?$/
/** An unreserved or control character, `\`, or a `%` that begins another encoding. */
const NEEDLESS =
  /%(?:[01][\dA-F]|2[DE]|3\d|4[1-9A-F]|5[\dACF]|6[1-9A-F]|7[\dAEF]|25(?=[\dA-Fa-f]{2}))/
const SEPARATOR = /%(?:2F|3F|23)/
/** C1 controls, and line and paragraph separators. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u
/** Also with parameters, which some servers remove before they resolve it. */
const DOT_SEGMENT = /(?:^|[/:])\.{1,2}(?:;[^/]*)?(?:\/|$)/
/** Without the look-behind, a match is tried again from each of the dots: quadratic time. */
const TRAILING = /(?<![. ])[. ]+(?=[/?#]|$)/g
const TRAILING_BEFORE = /(?<![. ])[. ]+(?=[/?#])/g
/** An expression of a template (RFC 6570). */
const EXPRESSION = /\{[+#./;?&]?[\w.%,:*]+\}/g

/** Reports whether a URI is in its normal form. */
export function isNormalUri(uri: string): boolean {
  const parts = uri.length > MAX_URI_CHARS ? null : URI.exec(uri)
  if (parts === null) return false
  const [, scheme, authority, path = '', query = '', fragment = ''] = parts
  if (!PATH.test(path) || SEPARATOR.test(`${authority}${path}`) || path.includes('//')) return false
  if (!BEHIND.test(query) || !BEHIND.test(fragment)) return false
  if (NEEDLESS.test(uri)) return false
  if (authority !== undefined && !AUTHORITY.test(authority)) return false
  if (scheme === 'file' && (authority !== '' || !path.startsWith('/'))) return false
  // The identifier of the namespace (RFC 8141 section 3.1).
  if (scheme === 'urn' && !/^[a-z\d][a-z\d-]+:./.test(path)) return false
  const text = decoded(path)
  if (text === undefined || DOT_SEGMENT.test(text.normalize('NFKC'))) return false
  return !CONTROL.test(decoded(uri) ?? '\0') && isResolved(uri)
}

/** Reports whether a template (RFC 6570) expands to URIs in their normal form. */
export const isNormalTemplate = (template: string): boolean =>
  isNormalUri(template.replace(EXPRESSION, 'x'))

/**
 * Returns what is wrong with a key of a table of resources: a URI, or the beginning of URIs before `*`. Undefined:
 * nothing. A template would permit its own text only, and a list that shows it, but no resource that it names.
 */
export function mistakeInPattern(pattern: string): string | undefined {
  if (withoutExpressions(pattern) !== pattern) {
    const begin = `${literalOf(pattern)}*`
    const hint = begin === '*' || mistakeInPattern(begin) ? '' : `; write "${begin}"`
    return `is a template, which permits no resource${hint}`
  }
  const isPrefix = pattern.endsWith('*')
  const text = isPrefix ? pattern.slice(0, -1) : pattern
  if (text === '' || isNormalUri(isPrefix ? `${text}x` : text))
    return text.includes('*') ? 'has a * that is not at its end' : undefined
  const suggested = suggestedFor(isPrefix ? `${text}x` : text)
  const isUsable = suggested !== undefined && (!isPrefix || suggested.endsWith('x'))
  const hint = isUsable
    ? `; did you mean "${isPrefix ? `${suggested.slice(0, -1)}*` : suggested}"?`
    : '; write a scheme, a complete host and a path, and percent-encode only what must be'
  return `is not in the normal form of URIs (RFC 3986)${hint}`
}

/** Returns the normal form of a URI, if a URL parser and simple replacements find it. */
function suggestedFor(uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined
  const { href } = new URL(uri)
  const found = href
    .replace(/%[\da-f]{2}/gi, (encoded) => {
      const text = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
      return /[\w.~-]/.test(text) ? text : encoded.toUpperCase()
    })
    .replace(/(?<=[^:/]|:\/\/)\/{2,}/g, '/')
  return isNormalUri(found) ? found : undefined
}

/** Returns a template with nothing in place of its expressions: the shortest URI that it names. */
export const withoutExpressions = (template: string): string => template.replace(EXPRESSION, '')

/** Returns the part of a template before its first expression. */
export const literalOf = (template: string): string => template.replace(/\{.*$/s, '')

/** Returns undefined for bytes that are not UTF-8. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Default ports, and other spellings of a host: what a URL parser would change. */
function isResolved(uri: string): boolean {
  try {
    return new URL(uri).href === uri
  } catch {
    return false
  }
}

/**
 * Returns a text that is equal for URIs that some servers read as equal: decoded, in one case, in one
 * form of Unicode without invisible characters, and without dots and spaces at the end of a segment.
 * `isPrefix`: the end is not that of a segment.
 */
export function foldedUri(uri: string, isPrefix = false): string {
  const text = (decoded(uri) ?? uri).replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  const folded = text.normalize('NFKC').toUpperCase().toLowerCase()
  return folded.replace(isPrefix ? TRAILING_BEFORE : TRAILING, '')
}
