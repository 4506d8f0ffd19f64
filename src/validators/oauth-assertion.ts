/** The claims of a client's assertion (RFC 7523 section 3). */
import * as z from 'zod'

/** How far ahead an assertion may end: it is made for one request. */
export const MAX_ASSERTION_AHEAD_SECONDS = 300
/** How far the client's clock may be off. */
export const ASSERTION_TOLERANCE_SECONDS = 5
/** The end of the year 9999. */
const MAX_TIME_SECONDS = 253_402_300_799

const time = z.number().min(0).max(MAX_TIME_SECONDS)

/**
 * Claims, checked one by one. `aud` must be one name: an assertion that is good at two servers is one
 * that each of them can use at the other. What depends on the client and the clock is not checked here.
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
