/** Consistency tokens: up to which write of a tenant's tuples a decision must know (zookies). */
import { base64url } from 'jose'

/** Answers to writes have it, and requests that are to know of them. */
export const CONSISTENCY_HEADER = 'X-Consistency-Token'

/** Names the format, so that another one can be told from it. */
const FORMAT = 'v1'
/** A version in base 36: the largest safe integer has 11 digits. */
const TOKEN = /^v1\.([0-9a-z]{1,11})\.[A-Za-z0-9_-]*$/
const RADIX = 36
/** Clocks of Redis and of an isolate differ by less; a version beyond was made by nobody. */
const MAX_AHEAD_MS = 60_000
const MICROSECONDS_PER_MS = 1_000
const encoder = new TextEncoder()

/**
 * The token of a version (microseconds since the epoch) of a tenant's tuples, in characters that a
 * header takes. It names the tenant. It is no secret and not signed: a version that was made up can
 * only ask for fresher decisions, or for none.
 */
export const encodeConsistency = (version: number, tenant: string | null): string =>
  `${FORMAT}.${version.toString(RADIX)}.${base64url.encode(encoder.encode(tenant ?? ''))}`

/**
 * The version that a token names, microseconds since the epoch. Undefined: it is not spelled as
 * {@link encodeConsistency} does, is another tenant's, or of more than a minute after `nowMs`
 * (milliseconds since the epoch).
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
