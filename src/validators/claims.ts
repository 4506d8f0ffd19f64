/** The claims of an access token (RFC 7519 section 4.1, RFC 9068 section 2.2). */
import * as z from 'zod'
import { name, scopeName } from './name.ts'

export const MAX_SUBJECT_CHARS = 255
const MAX_TOKEN_ID_CHARS = 256
const MAX_NAME_CHARS = 256
/** As in `ISSUERS`. */
const MAX_ISSUER_CHARS = 2_048
/** 32 bytes as canonical base64url (RFC 7638, RFC 4648 section 3.5). */
const THUMBPRINT = /^[\w-]{42}[AEIMQUYcgkosw048]$/
/** The end of the year 9999, as an RFC 3339 time can tell it. */
const MAX_TIME_SECONDS = 253_402_300_799

/** NumericDate: seconds since the epoch, not necessarily whole (RFC 7519 section 2). */
const time = z.number().min(0).max(MAX_TIME_SECONDS)

const scopeText = z
  .string()
  .transform((text) => (text === '' ? [] : text.split(' ')))
  .pipe(z.array(scopeName))

/**
 * Claims, checked one by one; the relations between times depend on the clock and are not checked
 * here. `scope` may be the standard's string or the array that some providers send, and an empty
 * string is no scope. `roles` may be an array or a string, and a string is one role: it is NOT
 * split, for a role may have a space in its name. `aud` is always returned as an array.
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
  // Another way to bind a token (RFC 8705) is none that is checked here: strict.
  cnf: z.strictObject({ jkt: z.string().regex(THUMBPRINT) }).optional(),
})

export type Claims = z.output<typeof claimsSchema>
