/** The `shedLoad` stage: refuses requests at once if too many are in progress. */

import { Unavailable } from '../errors.ts'
import { createInFlightCount, FULL, type InFlightCount } from '../isolate/in-flight.ts'
import { createMiddleware } from './create-middleware.ts'

export interface ShedLoadOptions {
  /** In one isolate. */
  readonly maxConcurrentRequests: number
  /** Responses in progress, with this one. Default: any number. */
  readonly maxOpenResponses?: number | undefined
  /** Returns the number of responses in progress. Default: they are not counted. */
  readonly openResponses?: (() => number) | undefined
  /** The count of requests, for gateways that share one limit. Default: a count of its own. */
  readonly inFlight?: InFlightCount | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** Extra share of the limit for the operators' own routes. */
const RESERVE_SHARE = 0.1
const RETRY_AFTER_SECONDS = 1

/**
 * Refuses requests with `Unavailable` (`gateway`, `overloaded`) while too many others of this
 * isolate are in progress. A request is in progress until its response begins, or until its response
 * ends if the runtime counts responses. So an overloaded isolate serves some requests in time
 * instead of all too late. The gateway's own routes below `/-/` have a tenth more capacity, so that
 * operators still have access. Comes right after `audit`.
 *
 * @example
 * ```ts
 * app.use(requestId(), audit({ sink }), shedLoad({ maxConcurrentRequests: 1_000 }))
 * ```
 */
export const shedLoad = ({
  maxConcurrentRequests,
  maxOpenResponses = Number.POSITIVE_INFINITY,
  openResponses,
  inFlight = createInFlightCount(),
  now = () => Date.now(),
}: ShedLoadOptions) => {
  if (!Number.isSafeInteger(maxConcurrentRequests) || maxConcurrentRequests < 1)
    throw new RangeError(
      `shedLoad: maxConcurrentRequests must be an integer above 0, not ${maxConcurrentRequests}`,
    )
  const withReserve = Math.ceil(maxConcurrentRequests * (1 + RESERVE_SHARE))
  // One error for all requests: creating it takes longer than refusing.
  const overloaded = new Unavailable('gateway', 'overloaded', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    shortCircuited: true,
  })
  return createMiddleware(async function shedLoad(c, next) {
    const isOperators = c.req.path.startsWith('/-/')
    const share = isOperators ? 1 + RESERVE_SHARE : 1
    if (openResponses !== undefined && openResponses() > maxOpenResponses * share) throw overloaded
    const slot = inFlight.enter(isOperators ? withReserve : maxConcurrentRequests, now())
    if (slot === FULL) throw overloaded
    try {
      await next()
    } finally {
      inFlight.leave(slot)
    }
  })
}
