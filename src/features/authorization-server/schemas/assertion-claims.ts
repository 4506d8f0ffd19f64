/** Claims of client assertions (RFC 7523 section 3). */
import * as z from 'zod/mini'
import { audiences, numericDate, tokenId } from '../../../validators/claims.ts'
import { absentIfNull, nonEmpty } from '../../../validators/schema-parts.ts'

/** Maximum time from `iat` to `exp` of an assertion. Client libraries use this value by default. */
export const MAX_ASSERTION_SECONDS = 3_600
/** Maximum time until `exp` of an assertion without `iat`, because its age is unknown. */
export const MAX_UNDATED_ASSERTION_SECONDS = 300
/** How long an assertion is accepted after its end, if the client's clock is behind the gateway's. */
export const ASSERTION_TOLERANCE_SECONDS = 5
/** How far `iat` and `nbf` of an assertion may be ahead of the gateway's clock (FAPI 2.0 section 5.3.2.1). */
export const ASSERTION_AHEAD_SECONDS = 10

/**
 * Schema of the claims of a client assertion. Does NOT check claims that depend on the client, the server
 * or the clock.
 */
export const assertionClaims = z.looseObject({
  iss: nonEmpty,
  sub: nonEmpty,
  aud: audiences,
  exp: numericDate,
  iat: absentIfNull(numericDate),
  nbf: absentIfNull(numericDate),
  jti: tokenId,
})

export type AssertionClaims = z.output<typeof assertionClaims>
