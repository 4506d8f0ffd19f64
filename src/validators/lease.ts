/** The field `lease` of a limit. */

import * as z from 'zod/mini'
import { wholeNumber } from './schema-parts.ts'

/** A shorter lease would expire before the response that grants it arrives. */
const MIN_TTL_MS = 50
/** A lease and its margin must fit in the window several times. */
const MAX_WINDOW_SHARE = 1 / 4
const MS_PER_SECOND = 1_000

export const leaseSchema = z.strictObject({
  max: wholeNumber(2, 1_000_000),
  ttlMs: wholeNumber(MIN_TTL_MS, 60_000),
})

interface LeasedLimit {
  readonly lease?: Readonly<z.output<typeof leaseSchema>> | undefined
  readonly windowSeconds: number
  readonly cost?: number | undefined
  readonly engine?: unknown
}

/** Returns why the limit cannot have its lease, in words that continue after `lease`. */
export function leaseMistake(limit: LeasedLimit): string | undefined {
  const { lease, windowSeconds, cost = 1, engine } = limit
  if (lease === undefined) return undefined
  const { max, ttlMs } = lease
  const longestMs = Math.floor(windowSeconds * MS_PER_SECOND * MAX_WINDOW_SHARE)
  if (typeof engine === 'object') return 'requires exact windows; remove engine'
  if (max < cost) return `max of ${max} must be at least the cost of a request, ${cost}`
  if (longestMs < MIN_TTL_MS) return 'requires a longer window'
  if (ttlMs < MIN_TTL_MS || ttlMs > longestMs)
    return `ttlMs must be from ${MIN_TTL_MS} to ${longestMs}, a quarter of the window`
  return undefined
}
