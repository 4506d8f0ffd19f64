export type InspectedMedia = 'json' | 'form' | 'text'

/** A media type, without parameters other than `charset=utf-8`. `+json`: RFC 6839 section 3.1. */
const INSPECTED =
  /^(?:(?<json>application\/(?:[a-z0-9!#$&^_.-]+\+)?json)|(?<form>application\/x-www-form-urlencoded)|text\/plain)[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i

/** The accepted media types, for the `Accept` header of a refusal (RFC 9110 section 15.5.16). */
export const INSPECTED_TYPES = 'application/json, application/x-www-form-urlencoded, text/plain'

/**
 * Returns how to parse a body of this `Content-Type`, always as UTF-8. Returns undefined for a type
 * that cannot be inspected, including a list of two types and other charsets.
 */
export function inspectedMedia(contentType: string | undefined): InspectedMedia | undefined {
  const match = INSPECTED.exec(contentType ?? '')
  if (match === null) return undefined
  if (match.groups?.json !== undefined) return 'json'
  return match.groups?.form !== undefined ? 'form' : 'text'
}
