/** Claims of access tokens (RFC 9068 section 2.2). */

import * as z from 'zod/mini'
import { issuerName, name, scopeName } from './names.ts'
import { converted, text } from './schema-parts.ts'

const MAX_SUBJECT_CHARS = 255
/** 32 bytes as canonical base64url (RFC 7638, RFC 4648 section 3.5). */
const THUMBPRINT = /^[\w-]{42}[AEIMQUYcgkosw048]$/
/** End of the year 9999, the last year that RFC 3339 can represent. */
const MAX_TIME_SECONDS = 253_402_300_799

/** NumericDate: seconds since the epoch, possibly with a fraction (RFC 7519 section 2). */
export const numericDate = z.number().check(z.minimum(0), z.maximum(MAX_TIME_SECONDS))

export const tokenId = text(256).check(z.refine((id) => id.isWellFormed()))

/** Text or an array of texts, as an array that is not empty (RFC 7519 section 4.1.3). */
export const audiences = z.union([
  converted(z.string(), (one) => [one]),
  z.array(z.string()).check(z.minLength(1)),
])

const shortName = name(256)
const scopes = z.array(scopeName)
const scopeText = z.pipe(
  converted(z.string(), (list) => list.split(' ').filter((name) => name !== '')),
  scopes,
)

/**
 * Schema of the claims of an access token. `scope` may be a string, or an array as some providers
 * send it. A string in `roles` is one role and is NOT split: a role name may contain a space. Does
 * NOT check times against the clock or each other.
 */
export const claimsSchema = z.object({
  sub: name(MAX_SUBJECT_CHARS),
  aud: audiences,
  exp: numericDate,
  iat: numericDate,
  nbf: z.optional(numericDate),
  jti: z.optional(tokenId),
  scope: z._default(z.union([scopeText, scopes]), []),
  roles: z._default(z.union([converted(shortName, (one) => [one]), z.array(shortName)]), []),
  tenant: z.optional(shortName),
  plan: z.optional(shortName),
  sid: z.optional(shortName),
  client_id: z.optional(shortName),
  sub_iss: z.optional(issuerName),
  // Strict, because other ways to bind a token (RFC 8705) are not checked here.
  cnf: z.optional(z.strictObject({ jkt: z.string().check(z.regex(THUMBPRINT)) })),
})

export type Claims = z.output<typeof claimsSchema>
