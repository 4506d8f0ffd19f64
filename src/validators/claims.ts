/** Claims of an access token (RFC 7519 section 4.1, RFC 9068 section 2.2). */
import * as z from 'zod'
import { name, scopeName } from './name.ts'

export const MAX_SUBJECT_CHARS = 255
const MAX_TOKEN_ID_CHARS = 256
const MAX_NAME_CHARS = 256
/** The same limit as in `ISSUERS`. */
const MAX_ISSUER_CHARS = 2_048
/** 32 bytes as canonical base64url (RFC 7638, RFC 4648 section 3.5). */
const THUMBPRINT = /^[\w-]{42}[AEIMQUYcgkosw048]$/
/** End of the year 9999, the last year that RFC 3339 can represent. */
const MAX_TIME_SECONDS = 253_402_300_799

/** NumericDate: seconds since the epoch, possibly with a fraction (RFC 7519 section 2). */
const time = z.number().min(0).max(MAX_TIME_SECONDS)

const scopeText = z
  .string()
  .transform((text) => (text === '' ? [] : text.split(' ')))
  .pipe(z.array(scopeName))

/**
 * Schema of the claims. Each claim is checked by itself. Does NOT check times against the clock or
 * each other.
 *
 * `scope` may be a string, as in the standard, or an array, as some providers send it; an empty
 * string means no scope. `roles` may be an array or a string. A string is one role and is NOT
 * split, because a role name may contain a space. `aud` is always returned as an array.
 */
export const claimsSchema = z.object({
  sub: name(MAX_SUBJECT_CHARS),
  aud: z.union([z.string().transform((one) => [one]), z.array(z.string()).min(1)]),
  exp: time,
  iat: time,
  nbf: time.optional(),
  jti: z
    .string()
    .min(1)
    .max(MAX_TOKEN_ID_CHARS)
    .refine((text) => text.isWellFormed())
    .optional(),
  scope: z.union([scopeText, z.array(scopeName)]).default([]),
  roles: z
    .union([name(MAX_NAME_CHARS).transform((one) => [one]), z.array(name(MAX_NAME_CHARS))])
    .default([]),
  tenant: name(MAX_NAME_CHARS).optional(),
  sid: name(MAX_NAME_CHARS).optional(),
  client_id: name(MAX_NAME_CHARS).optional(),
  sub_iss: name(MAX_ISSUER_CHARS).optional(),
  // Strict, because other ways to bind a token (RFC 8705) are not checked here.
  cnf: z.strictObject({ jkt: z.string().regex(THUMBPRINT) }).optional(),
})

export type Claims = z.output<typeof claimsSchema>
