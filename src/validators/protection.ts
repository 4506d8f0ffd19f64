/** Bounds of requests and revocations, in a policy and in the options of a guard. */
import * as z from 'zod/mini'
import { wholeNumber } from './schema-parts.ts'

export const maxBodyBytesSchema = wholeNumber(0, 104_857_600)

/** The longest credential of a request. An access token of a user in 200 groups has 11,000 bytes. */
export const DEFAULT_MAX_TOKEN_BYTES = 16_384
/** A shorter bound would refuse the gateway's own tokens. */
const MIN_TOKEN_BYTES = 2_048
/** The other fields of a request need 8 KiB of the 32 KiB that a server on Node accepts for all. */
const MAX_TOKEN_BYTES = 24_576
export const maxTokenBytesSchema = z
  .number()
  .check(
    z.refine(
      (value) => Number.isInteger(value) && value >= MIN_TOKEN_BYTES && value <= MAX_TOKEN_BYTES,
      `must be a whole number from ${MIN_TOKEN_BYTES} to ${MAX_TOKEN_BYTES}; maxHeaderBytes is for all fields together`,
    ),
  )
export const maxConcurrentRequestsSchema = wholeNumber(1, 1_000_000)

/** A longer time would make revocations ineffective. */
const MAX_STALENESS_MS = 60_000
export const revocationSchema = z.partial(
  z.strictObject({ maxStalenessMs: wholeNumber(0, MAX_STALENESS_MS) }),
)
