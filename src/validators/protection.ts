/** Bounds of requests and revocations, in a policy and in the options of a guard. */
import { type Mistake, mistakeAt } from '../problems/mistake.ts'
import { partial, wholeNumber } from './schema-parts.ts'

export const maxBodyBytesSchema = wholeNumber(0, 104_857_600)
/** Cloudflare's limit on all header fields of a request; `wrangler dev` accepts more. */
export const MOST_HEADER_BYTES = 131_072
export const maxHeaderBytesSchema = wholeNumber(8_192, MOST_HEADER_BYTES)
/** The longest credential of a request. An access token of a user in 200 groups has 11,000 bytes. */
export const DEFAULT_MAX_TOKEN_BYTES = 16_384
/** A shorter bound would refuse the gateway's own tokens. */
const MIN_TOKEN_BYTES = 2_048
/** No token is longer, wherever it comes from. */
const MAX_TOKEN_BYTES = 65_536
/** What a server on Node accepts by default. */
const DEFAULT_HEADER_BYTES = 32_768
/** For the other fields of a request. */
const OTHER_FIELDS_BYTES = 8_192
export const maxTokenBytesSchema = wholeNumber(MIN_TOKEN_BYTES, MAX_TOKEN_BYTES)

/** Yields the mistake of a bound for tokens that a server does not accept in a field of a request. */
export function* mistakesInBounds({
  maxTokenBytes = DEFAULT_MAX_TOKEN_BYTES,
  maxHeaderBytes = DEFAULT_HEADER_BYTES,
}: Bounds): Generator<Mistake> {
  const most = maxHeaderBytes - OTHER_FIELDS_BYTES
  if (maxTokenBytes > DEFAULT_MAX_TOKEN_BYTES && maxTokenBytes > most)
    yield mistakeAt(
      'too_big',
      ['maxTokenBytes'],
      `must be at most ${most}, which is maxHeaderBytes less ${OTHER_FIELDS_BYTES} for other fields; raise maxHeaderBytes`,
    )
}

interface Bounds {
  readonly maxTokenBytes?: number | undefined
  readonly maxHeaderBytes?: number | undefined
}

export const maxConcurrentRequestsSchema = wholeNumber(1, 1_000_000)

/** An isolate has 128 MB for everything. */
export const DEFAULT_TOKEN_CACHE_BYTES = 62_914_560
/** From 1 MiB, for some 200 credentials, to 4 GiB. */
export const tokenCacheBytesSchema = wholeNumber(1_048_576, 4_294_967_296)

/** How often open responses are checked, and for how long their checks may fail. */
export const recheckSecondsSchema = wholeNumber(0, 3_600)

/** A longer time would make revocations ineffective. */
const MAX_STALENESS_MS = 60_000
export const revocationSchema = partial({ maxStalenessMs: wholeNumber(0, MAX_STALENESS_MS) })
