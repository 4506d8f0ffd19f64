/** What a limit may take ahead. */
import * as z from 'zod'

/** Shorter than this a lease does not outlive the call that brings it. */
const MIN_TTL_MS = 50
/** A lease, and its margin, have to lie within the window with room to spare. */
const MAX_WINDOW_SHARE = 1 / 4
const MS_PER_SECOND = 1_000

/** The field `lease` of a limit. */
export const leaseSchema = z.strictObject({
  max: z.int().min(2).max(1_000_000),
  ttlMs: z.int().min(MIN_TTL_MS).max(60_000),
})

interface LeasedLimit {
  readonly lease?: { readonly max: number; readonly ttlMs: number } | undefined
  readonly windowSeconds: number
  readonly cost?: number | undefined
  readonly engine?: string | undefined
}

/** Whether the limit is exact, and its lease at least a request and at most a quarter of its window. */
export function isGoodLease({ lease, windowSeconds, cost = 1, engine }: LeasedLimit): boolean {
  if (lease === undefined) return true
  const { max, ttlMs } = lease
  const isShort = ttlMs >= MIN_TTL_MS && ttlMs <= windowSeconds * MS_PER_SECOND * MAX_WINDOW_SHARE
  return engine !== 'upstash' && max >= cost && isShort
}
