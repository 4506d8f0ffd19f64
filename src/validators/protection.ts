/** Bounds of requests and revocations, in a policy and in the options of a guard. */
import * as z from 'zod/mini'
import { wholeNumber } from './schema-parts.ts'

export const maxBodyBytesSchema = wholeNumber(0, 104_857_600)
export const maxConcurrentRequestsSchema = wholeNumber(1, 1_000_000)

/** A longer time would make revocations ineffective. */
const MAX_STALENESS_MS = 60_000
export const revocationSchema = z.partial(
  z.strictObject({ maxStalenessMs: wholeNumber(0, MAX_STALENESS_MS) }),
)
