/** Delays the response to a call that ends access until isolates that decide locally refuse it, too. */
import * as z from 'zod/mini'
import { sleep } from '../../isolate/timers.ts'
import { describe } from '../../validators/checks.ts'

export const waitSchema = z.strictObject({
  wait: z
    .optional(z.literal('everywhere'))
    .check(
      describe(
        '`everywhere`: the response comes when isolates that decide without a call to Redis refuse the ' +
          'callers, too: later by `revocation.maxStalenessMs` of the policy, at most 60 s. Default: those ' +
          'isolates refuse them within `revocation.maxStalenessMs` after the response',
      ),
    ),
})

/** Waits if a call demands it. Call it after the write. */
export type WaitUntilInForce = (query: z.output<typeof waitSchema>) => Promise<void>

/**
 * Isolates compare whole milliseconds, timers may end early by one, and the clock of another machine may
 * be slower by 100 ppm: 6 ms in the longest bound.
 */
const MARGIN_MS = 10

/**
 * Creates the wait. An isolate that admits a caller locally has sent its last read of the feed less than
 * `maxStalenessMs` before. So `maxStalenessMs` after a write, every such read was sent after the write.
 */
export function createWait(maxStalenessMs: number): WaitUntilInForce {
  return async function waitUntilInForce({ wait }) {
    if (wait === 'everywhere' && maxStalenessMs > 0) await sleep(maxStalenessMs + MARGIN_MS)
  }
}
