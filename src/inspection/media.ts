/** Bodies that can be looked into. */
import { isJsonMediaType } from '../validators/media-type.ts'

export type InspectedMedia = 'json' | 'form' | 'text'

/** RFC 6839 section 3.1: JSON by another name. */
const JSON_SUFFIX = /^application\/[a-z0-9!#$&^_.-]+\+json$/i
const FORM_OR_TEXT =
  /^(?:application\/x-www-form-urlencoded|text\/plain)[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i

/** What a refused body could have been; the value of `Accept` (RFC 9110 section 15.5.16). */
export const INSPECTED_TYPES = 'application/json, application/x-www-form-urlencoded, text/plain'

/**
 * How a body of this `Content-Type` is to be read, always as UTF-8; undefined for what cannot be
 * looked into, a list of two types and other charsets included.
 */
export function inspectedMedia(contentType: string | undefined): InspectedMedia | undefined {
  if (contentType === undefined) return undefined
  if (isJsonMediaType(contentType) || JSON_SUFFIX.test(contentType)) return 'json'
  if (!FORM_OR_TEXT.test(contentType)) return undefined
  return contentType.startsWith('t') || contentType.startsWith('T') ? 'text' : 'form'
}
