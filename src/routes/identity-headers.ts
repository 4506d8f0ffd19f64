/** How a verified identity is told to an origin. */
import type { Principal } from '../tokens/principal.ts'

/** Visible ASCII but the percent sign: needs no encoding in a header. */
const PLAIN = /^[!-$&-~]*$/
const NOT_PLAIN = /[^!-$&-~]+/g

/**
 * Encodes a value so that it stands in a header as one word: whatever is not visible ASCII, and
 * `%` itself, is percent-encoded as UTF-8. `decodeURIComponent` gives the value back.
 */
export function headerWord(value: string): string {
  return PLAIN.test(value)
    ? value
    : value.toWellFormed().replace(NOT_PLAIN, (run) => encodeURIComponent(run))
}

/** A {@link headerWord} for a comma-separated list: split at commas, then decode. */
const listWord = (value: string): string => headerWord(value).replaceAll(',', '%2C')

/**
 * Writes `X-Auth-Subject`, `-Issuer`, `-Client`, `-Tenant` (one word each), `-Roles` (a comma
 * list) and `-Scope` (a space list, RFC 6749 section 3.3). What the token does not say is left
 * out. `headers` must be free of a client's own `X-Auth-*`: see `sanitizeHeaders`.
 */
export function setIdentity(headers: Headers, principal: Principal): void {
  headers.set('X-Auth-Subject', headerWord(principal.subject))
  headers.set('X-Auth-Issuer', headerWord(principal.issuer))
  if (principal.client !== undefined) headers.set('X-Auth-Client', headerWord(principal.client))
  if (principal.tenant !== undefined) headers.set('X-Auth-Tenant', headerWord(principal.tenant))
  if (principal.roles.length > 0)
    headers.set('X-Auth-Roles', principal.roles.map(listWord).join(','))
  if (principal.scopes.length > 0)
    headers.set('X-Auth-Scope', principal.scopes.map(headerWord).join(' '))
}
