/** Bodies that can be looked into. */

export type InspectedMedia = 'json' | 'form' | 'text'

/** A media type, and no parameter but `charset=utf-8`. `+json`: RFC 6839 section 3.1. */
const INSPECTED =
  /^(?:(?<json>application\/(?:[a-z0-9!#$&^_.-]+\+)?json)|(?<form>application\/x-www-form-urlencoded)|text\/plain)[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i

/** What a refused body could have been; the value of `Accept` (RFC 9110 section 15.5.16). */
export const INSPECTED_TYPES = 'application/json, application/x-www-form-urlencoded, text/plain'

/**
 * How a body of this `Content-Type` is to be read, always as UTF-8; undefined for what cannot be
 * looked into, a list of two types and other charsets included.
 */
export function inspectedMedia(contentType: string | undefined): InspectedMedia | undefined {
  const match = INSPECTED.exec(contentType ?? '')
  if (match === null) return undefined
  if (match.groups?.json !== undefined) return 'json'
  return match.groups?.form !== undefined ? 'form' : 'text'
}
