/** Decides whether a request body may be parsed as JSON. */

const JSON_TYPE =
  /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i

/** Origins differ in how they read another charset, or a list of two types. */
export function isJsonMediaType(contentType: string | undefined): boolean {
  return contentType !== undefined && JSON_TYPE.test(contentType)
}
