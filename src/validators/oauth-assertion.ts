/** Claims of a client assertion (RFC 7523 section 3). */
import * as z from 'zod'

/** Maximum time from `iat` to `exp` of an assertion. Client libraries use this value by default. */
export const MAX_ASSERTION_SECONDS = 3_600
/** Maximum time until `exp` of an assertion without `iat`, because its age is unknown. */
export const MAX_UNDATED_ASSERTION_SECONDS = 300
/** Tolerance for differences between the client's clock and the gateway's. */
export const ASSERTION_TOLERANCE_SECONDS = 5
/** End of the year 9999. */
const MAX_TIME_SECONDS = 253_402_300_799

const time = z.number().min(0).max(MAX_TIME_SECONDS)

/**
 * Schema of the claims. Each claim is checked by itself. `aud` must be one name: with two
 * audiences, each server could use the assertion at the other one. Does NOT check claims that
 * depend on the client or the clock.
 */
export const assertionClaims = z.looseObject({
  iss: z.string().min(1),
  sub: z.string().min(1),
  aud: z.union([z.string(), z.tuple([z.string()]).transform(([one]) => one)]),
  exp: time,
  iat: time.optional(),
  nbf: time.optional(),
  jti: z
    .string()
    .min(1)
    .max(256)
    .refine((text) => text.isWellFormed()),
})

export type AssertionClaims = z.output<typeof assertionClaims>
