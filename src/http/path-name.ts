/** Compares names in paths as leniently as any common server does. */

/** A segment of a request's path, in the forms that are compared with tokens. */
export interface Name {
  /** Percent-decoded. */
  readonly decoded: string
  /** Lower case, without accents, compatibility forms, invisible characters. `+` is a space. */
  readonly folded: string
  /** Whether it has only ASCII letters, digits, `_` and `-`, which no server ignores. */
  readonly isPlain: boolean
}

/** Token of a parameter that matches every name. */
export const ANY = Symbol('any')
/** A folded literal, the expression of a parameter, or {@link ANY}. */
export type Token = string | RegExp | typeof ANY

const PLAIN = /^[a-z0-9_-]*$/
/** Replaces each non-ASCII character in a folded name, which a charset conversion could change. */
const FOREIGN = '\ufffd'

/** Text after a literal: Windows ignores dots and spaces, and reads `name:stream` as the file. */
export const IN_THE_MIDDLE = /^[ .]*(?::|$)/
/** The same for the last segment: Rails and Spring MVC read `name.json` as `name`. */
export const AT_THE_END = /^ *(?:[.:]|$)/
/** The same for a script that more segments follow: `/admin.php/x`. */
export const BEFORE_PATH_INFO = /^[ .]*(?::|$)|^ *\.[a-z]/

/** `.env` and `v1.2` have none. */
export const hasExtension = (name: string) => /[^.]\.[a-z]/i.test(name)

/** Whether a name has the extension of a script that a server runs. */
export const isScript = ({ folded }: Name) =>
  /\.(?:php\d?|phtml|f?cgi|pl|aspx?|as[hm]x|jspx?|cfm)[ .]*(?::|$)/.test(folded)

/** Served for its folder: ASP.NET MVC reads `/orders/index` as `/orders`. */
export const isDefaultDocument = ({ folded }: Name) => /^ *(?:index|default) *(?:\.|$)/.test(folded)

/** Parses a path segment. Throws `URIError` if it is not percent-encoded UTF-8. */
export function parseName(segment: string): Name {
  const lower = segment.toLowerCase()
  if (PLAIN.test(lower)) return { decoded: lower, folded: lower, isPlain: true }
  const decoded = decodeURIComponent(segment)
  const folded = decoded
    .normalize('NFKD')
    .replace(/[\s+]/g, ' ')
    .replace(/[\p{M}\p{C}\p{DI}]/gu, '')
    .toUpperCase()
    .toLowerCase()
    .replace(/[^ -~]/gu, FOREIGN)
  return { decoded, folded, isPlain: false }
}

/** Reports whether an origin could read a name as a token followed by text that `tail` matches. */
export function matchesToken(
  token: Token,
  { decoded, folded, isPlain }: Name,
  tail: RegExp,
): boolean {
  if (token === ANY) return true
  if (typeof token === 'string') {
    if (isPlain || folded === token) return folded === token
    const end = matchLiteral(token, folded)
    return end === -1 ? isShortName(folded, token) : tail.test(folded.slice(end))
  }
  return [decoded, folded].some((name) => {
    const text = name.trim()
    const ends = [text.length, text.search(/[ .:]/), text.lastIndexOf('.')]
    return ends.some((end) => tail.test(text.slice(end)) && token.test(text.slice(0, end)))
  })
}

/** Returns the end of a literal at the start of a name, or -1. */
function matchLiteral(literal: string, name: string): number {
  let at = literal.startsWith(' ') ? 0 : name.length - name.trimStart().length
  let isAlike = false
  for (const character of literal) {
    if (name[at] === character) isAlike = true
    else if (name[at] !== FOREIGN) return -1
    at += 1
  }
  // A name without any character of the literal is a different word in another script.
  return isAlike ? at : -1
}

/** Windows short names: `ADMINI~1` for `administration`. */
function isShortName(name: string, literal: string): boolean {
  if (!name.includes('~')) return false
  const [, start] = /^([^~]+)~\d/.exec(name) ?? []
  const base = literal.replace(/(?<=.)\.[^.]*$/, '').replace(/[ .]/g, '')
  return start === base.slice(0, 6)
}
