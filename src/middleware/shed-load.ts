/** The `shedLoad` stage: where too many requests wait, the next one is told so at once. */
import { createMiddleware } from 'hono/factory'
import { createWaiting, FULL } from '../admission/waiting.ts'
import { Unavailable } from '../errors.ts'

export interface ShedLoadOptions {
  /** Requests of one isolate that may wait for their answer at the same time. */
  readonly maxConcurrentRequests: number
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** So much more than everybody may the operators' own routes have, of all of it. */
const RESERVE_SHARE = 0.1
const RETRY_AFTER_SECONDS = 1

/**
 * Refuses requests with `Unavailable` (`gateway`, `overloaded`: 503, `Retry-After: 1`) while so many
 * others of this isolate wait, before anything is read, verified or asked: an isolate that has
 * more to do than it can serves some in time instead of all too late. The gateway's own routes
 * below `/-/` have a tenth more room, so that operators get through.
 *
 * A request waits until its answer begins; a body that still streams does not count. Comes first
 * behind `audit`. Does NOT know what other isolates do: each has its own count.
 *
 * @example
 * ```ts
 * app.use(requestId(), audit({ sink }), shedLoad({ maxConcurrentRequests: 1_000 }))
 * ```
 */
export const shedLoad = ({ maxConcurrentRequests, now = Date.now }: ShedLoadOptions) => {
  if (!Number.isSafeInteger(maxConcurrentRequests) || maxConcurrentRequests < 1)
    throw new RangeError(`shedLoad: needs a whole number above 0, not ${maxConcurrentRequests}`)
  const withReserve = Math.ceil(maxConcurrentRequests * (1 + RESERVE_SHARE))
  const waiting = createWaiting()
  // One for all: nothing in it is of a request, and to make it takes longer than to refuse.
  const overloaded = new Unavailable('gateway', 'overloaded', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    unasked: true,
  })
  return createMiddleware(async function shedLoad(c, next) {
    const isOperators = c.req.path.startsWith('/-/')
    const slot = waiting.enter(isOperators ? withReserve : maxConcurrentRequests, now())
    if (slot === FULL) throw overloaded
    try {
      await next()
    } finally {
      waiting.leave(slot)
    }
  })
}
