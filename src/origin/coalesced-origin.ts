/** Request coalescing: concurrent identical requests share one call to the origin. */

import { malformed, Unavailable } from '../errors.ts'
import type { WaitUntil } from '../isolate/after-response.ts'
import { copyOfFailure, createSingleFlight, type Flight } from '../isolate/single-flight.ts'
import type { Origin, OriginRequest } from './origin.ts'
import {
  createKey,
  createResponse,
  isShareable,
  MAX_SHARED_BYTES,
  mayShare,
  READ_TIMEOUT_MS,
  readBody,
  type SharedResponse,
  splitResponse,
} from './shared-response.ts'

/** A call counts as in progress for this long after the last heartbeat of its request. */
const LEASE_MS = 3_000
const HEARTBEAT_MS = 500
/** Memory for shared responses in progress, in an isolate of 128 MB. */
const MAX_HELD_BYTES = 8_388_608

/** The result of a call for the requests that wait for it. */
type Outcome =
  | { readonly kind: 'response'; readonly response: SharedResponse }
  | { readonly kind: 'failed'; readonly error: Unavailable }
  /** The response must not be shared: each waiting request calls the origin itself. */
  | { readonly kind: 'private' }

export interface CoalescedOriginOptions {
  readonly origin: Origin
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

export interface SharingOptions {
  /** Runs before the origin is called for a request that has waited since `sinceMs`. May refuse. */
  readonly beforeCall?: ((sinceMs: number) => Promise<void>) | undefined
  /** Completes a shared response after the client of its first request has disconnected. */
  readonly waitUntil?: WaitUntil | undefined
}

export interface CoalescedOrigin extends Origin {
  send(request: OriginRequest, options?: SharingOptions): Promise<Response>
}

/**
 * Wraps an origin so that identical requests share one call while that call is in progress.
 * Identical are GET requests with the same URL and the same forwarded headers, except ids and the
 * assertion, and therefore the same caller. This is not a cache: a request that arrives after the
 * response is complete, or after a response has begun for which no request waited, calls the
 * origin.
 *
 * If the origin fails, the waiting requests receive the same failure. If the first request is
 * aborted, or ends without notice (detected after 3 s), the next one takes over. Each request calls
 * the origin itself if the response must not be shared (see {@link isShareable}), or if its body is
 * incomplete 2 s after its headers. A request waits for at most its `timeoutMs` and those 2 s.
 *
 * @example
 * ```ts
 * const origin = coalescedOrigin({ origin: createOrigin({ url: 'https://api.internal.example' }) })
 * app.get('/prices', proxy({ origin, coalesce: true }))
 * ```
 */
export function coalescedOrigin({
  origin,
  now = () => Date.now(),
}: CoalescedOriginOptions): CoalescedOrigin {
  const calls = createSingleFlight<Outcome>({ now, leaseMs: LEASE_MS, heartbeatMs: HEARTBEAT_MS })
  /** Calls that may keep a response in memory. */
  const holding = new Set<Flight<Outcome>>()

  function reserve(call: Flight<Outcome>): boolean {
    for (const other of holding) if (!other.isInProgress()) holding.delete(other)
    if ((holding.size + 1) * MAX_SHARED_BYTES > MAX_HELD_BYTES) return false
    holding.add(call)
    return true
  }

  async function lead(
    call: Flight<Outcome>,
    request: OriginRequest,
    waitUntil: WaitUntil | undefined,
  ): Promise<Response> {
    function end(outcome: Outcome | undefined): void {
      holding.delete(call)
      call.end(outcome)
    }
    try {
      const response = await origin.send(request)
      if (!call.isFollowed || !isShareable(response) || !reserve(call)) {
        end({ kind: 'private' })
        return response
      }
      if (response.body === null) {
        end({ kind: 'response', response: splitResponse(response, null) })
        return response
      }
      const [own, others] = response.body.tee()
      const sharing = readOutcome(response, others).then(end)
      waitUntil?.(sharing)
      return new Response(own, response)
    } catch (error) {
      end(error instanceof Unavailable ? { kind: 'failed', error } : undefined)
      throw error
    }
  }

  return {
    async send(request, { beforeCall, waitUntil } = {}) {
      if (!mayShare(request)) return origin.send(request)
      const key = createKey(request)
      const sinceMs = now()
      const running = calls.latest(key)
      if (running === undefined) return lead(calls.begin(key), request, waitUntil)
      const { flight, outcome } = await calls.follow(key, running, (waitedMs) => {
        if (request.incoming.signal.aborted) throw malformed('client_gone')
        if (waitedMs > request.timeoutMs + READ_TIMEOUT_MS)
          throw new Unavailable('origin', 'timeout')
      })
      switch (outcome?.kind) {
        case 'response':
          return createResponse(outcome.response)
        case 'failed':
          throw copyOfFailure(outcome.error)
        case 'private':
          await beforeCall?.(sinceMs)
          return origin.send(request)
        case undefined:
          try {
            await beforeCall?.(sinceMs)
          } catch (error) {
            // No fault of the origin: the next waiting request takes over.
            flight.end(undefined)
            throw error
          }
          return lead(flight, request, waitUntil)
      }
    },
  }
}

/** Never rejects. */
async function readOutcome(response: Response, body: ReadableStream<Uint8Array>): Promise<Outcome> {
  try {
    const bytes = await readBody(body)
    if (bytes === undefined) return { kind: 'private' }
    return { kind: 'response', response: splitResponse(response, bytes) }
  } catch (cause) {
    return { kind: 'failed', error: new Unavailable('origin', 'unreachable', { cause }) }
  }
}
