/** Whether a request body may be read as JSON. */

const JSON_TYPE =
  /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i

/**
 * True for `application/json`, with no parameter but `charset=utf-8`. JSON is UTF-8 (RFC 8259
 * section 8.1); another charset, or a list of two types, is read differently by different origins.
 */
export function isJsonMediaType(contentType: string | undefined): boolean {
  return contentType !== undefined && JSON_TYPE.test(contentType)
}
