import { isJsonType, utf8MediaType } from '../http/media-type.ts'

export type InspectedMedia = 'json' | 'form' | 'text'

/** The accepted media types, for the `Accept` header of a refusal (RFC 9110 section 15.5.16). */
export const INSPECTED_TYPES = 'application/json, application/x-www-form-urlencoded, text/plain'

/** The accepted media types of a route with signatures. */
export const TYPES_WITH_MULTIPART = `${INSPECTED_TYPES}, multipart/form-data`

/**
 * Returns how to parse a body of this `Content-Type`, always as UTF-8. Returns undefined for a type
 * that cannot be inspected, including a list of two types and other charsets.
 */
export function inspectedMedia(contentType: string | undefined): InspectedMedia | undefined {
  const type = utf8MediaType(contentType)
  if (type === 'application/x-www-form-urlencoded') return 'form'
  if (type === 'text/plain') return 'text'
  return isJsonType(type) ? 'json' : undefined
}
