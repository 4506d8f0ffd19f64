/** Reads `Content-Type` and `Content-Encoding` of a body that the gateway reads. */

const TOKEN = "[!#$%&'*+.^_`|~\\w-]+"
const TYPE = new RegExp(`^[ \\t]*(${TOKEN}/${TOKEN})`)
/**
 * One parameter, which may be empty or without a value (RFC 9110 section 5.6.6). Some clients send
 * white space around `=`. A quotation mark without its counterpart matches nothing.
 */
const PARAMETER = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${TOKEN})[ \\t]*(?:=[ \\t]*(?:(${TOKEN})|"((?:[^"\\\\]|\\\\.)*)"))?)?`,
  'gsy',
)
const UTF_8 = /^utf-?8$/i

/**
 * Returns the media type of a body in lower case, if the body is UTF-8 for every reader: without
 * `charset`, or with that of UTF-8 alone. Other parameters have no meaning here (RFC 2045 section 5.1,
 * RFC 8259 section 11). Returns undefined for another charset, which an origin could decode
 * differently, for a list of two types, and for text that is no media type.
 */
export function utf8MediaType(contentType: string | undefined): string | undefined {
  const [matched, type] = TYPE.exec(contentType ?? '') ?? []
  if (contentType === undefined || matched === undefined || type === undefined) return undefined
  let end = matched.length
  PARAMETER.lastIndex = end
  for (let part = PARAMETER.exec(contentType); part !== null; part = PARAMETER.exec(contentType)) {
    const [, name, token, quoted] = part
    if (name?.toLowerCase() === 'charset' && !UTF_8.test(token ?? quoted ?? '')) return undefined
    end = PARAMETER.lastIndex
  }
  return /^[ \t]*$/.test(contentType.slice(end)) ? type.toLowerCase() : undefined
}

/** Reports whether a media type of {@link utf8MediaType} is JSON. `+json`: RFC 6839 section 3.1. */
export const isJsonType = (type: string | undefined): boolean =>
  /^application\/(?:.+\+)?json$/.test(type ?? '')

/** Reports whether a body has a coding, such as gzip. Only the origin could decode it. */
export const hasCoding = (contentEncoding: string | undefined): boolean =>
  contentEncoding !== undefined && !/^[ \t]*(?:identity[ \t]*)?$/i.test(contentEncoding)
