/** Claims of access tokens (RFC 9068 section 2.2) and of client assertions (RFC 7523 section 3). */

import * as z from 'zod/mini'
import { issuerName, name, scopeName } from './names.ts'
import { absentIfNull, converted, nonEmpty, text } from './schema-parts.ts'

const MAX_SUBJECT_CHARS = 255
/** 32 bytes as canonical base64url (RFC 7638, RFC 4648 section 3.5). */
const THUMBPRINT = /^[\w-]{42}[AEIMQUYcgkosw048]$/
/** End of the year 9999, the last year that RFC 3339 can represent. */
const MAX_TIME_SECONDS = 253_402_300_799

/** NumericDate: seconds since the epoch, possibly with a fraction (RFC 7519 section 2). */
const time = z.number().check(z.minimum(0), z.maximum(MAX_TIME_SECONDS))

export const tokenId = text(256).check(z.refine((id) => id.isWellFormed()))

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
  aud: z.union([converted(z.string(), (one) => [one]), z.array(z.string()).check(z.minLength(1))]),
  exp: time,
  iat: time,
  nbf: z.optional(time),
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

/** Maximum time from `iat` to `exp` of an assertion. Client libraries use this value by default. */
export const MAX_ASSERTION_SECONDS = 3_600
/** Maximum time until `exp` of an assertion without `iat`, because its age is unknown. */
export const MAX_UNDATED_ASSERTION_SECONDS = 300
/** How long an assertion is accepted after its end, if the client's clock is behind the gateway's. */
export const ASSERTION_TOLERANCE_SECONDS = 5
/** How far `iat` and `nbf` of an assertion may be ahead of the gateway's clock (FAPI 2.0 section 5.3.2.1). */
export const ASSERTION_AHEAD_SECONDS = 10

/**
 * Schema of the claims of a client assertion. `aud` must be one name: with two, each server could
 * use the assertion at the other one. Does NOT check claims that depend on the client or the clock.
 */
export const assertionClaims = z.looseObject({
  iss: nonEmpty,
  sub: nonEmpty,
  aud: z.union([z.string(), converted(z.tuple([z.string()]), ([one]) => one)]),
  exp: time,
  iat: absentIfNull(time),
  nbf: absentIfNull(time),
  jti: tokenId,
})

export type AssertionClaims = z.output<typeof assertionClaims>
