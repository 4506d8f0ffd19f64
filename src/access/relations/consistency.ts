/** Consistency tokens (zookies in Zanzibar): versions of tuples that a decision must include. */
import { base64url } from 'jose'

/** In responses to writes, and in requests that require a decision that includes the write. */
export const CONSISTENCY_HEADER = 'X-Consistency-Token'

const FORMAT = 'v1'
/** The version is in base 36: the largest safe integer has 11 digits. */
const TOKEN = /^v1\.([0-9a-z]{1,11})\.[A-Za-z0-9_-]*$/
const RADIX = 36
/** The clocks of Redis and of an isolate differ by less. No later version was ever issued. */
const MAX_AHEAD_MS = 60_000
const MICROSECONDS_PER_MS = 1_000

/**
 * Returns the token for a version (microseconds since the epoch) of a tenant's tuples, in
 * characters that are valid in a header. The token names the tenant. It is neither secret nor
 * signed: with a forged version, a caller can only require fresher decisions or get no decision.
 */
export const encodeConsistency = (version: number, tenant: string | null): string =>
  `${FORMAT}.${version.toString(RADIX)}.${base64url.encode(tenant ?? '')}`

/**
 * Returns the version in a token, in microseconds since the epoch. Returns undefined if
 * {@link encodeConsistency} would spell it differently, if the token belongs to another tenant, or
 * if the version is more than a minute after `nowMs` (milliseconds since the epoch).
 */
export function decodeConsistency(
  token: string,
  tenant: string | null,
  nowMs: number,
): number | undefined {
  const [, digits] = TOKEN.exec(token) ?? []
  if (digits === undefined) return undefined
  const version = Number.parseInt(digits, RADIX)
  const isOwn = Number.isSafeInteger(version) && encodeConsistency(version, tenant) === token
  return isOwn && version <= (nowMs + MAX_AHEAD_MS) * MICROSECONDS_PER_MS ? version : undefined
}
