/** Request coalescing: concurrent identical requests share one call to the origin. */
import { Denied, Unavailable } from '../errors.ts'
import { type CollectedBody, collect } from '../isolate/collect.ts'
import {
  beginCall,
  failureFor,
  LEASE_MS,
  type Outcome,
  type SharedAnswer,
  type SharedCall,
} from '../isolate/shared-call.ts'
import { pollDelayMs, sleep } from '../isolate/timers.ts'
import { isShareable, keyOf, MAX_SHARED_BYTES, mayShare } from './eligibility.ts'
import type { Origin, OriginRequest } from './origin.ts'

/** Maximum time between the headers of a shared response and the end of its body. */
const COLLECT_TIMEOUT_MS = 2_000
/** Memory for shared responses in progress, in an isolate of 128 MB. */
const MAX_HELD_BYTES = 8_388_608

export interface CoalescedOriginOptions {
  readonly origin: Origin
  /** Returns milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Wraps an origin so that identical requests share one call while that call is in progress.
 * Identical are GET requests with the same URL and the same forwarded headers, except ids and the
 * assertion, and therefore the same caller.
 *
 * This is not a cache. A request calls the origin again if it arrives after the response is
 * complete, or after a response has begun for which no request waited. A shared response may show
 * the state of the origin when the first of the requests was sent.
 *
 * On Workers a request must not await a promise of another request, so waiting requests poll for
 * data. If the origin fails, they receive the same failure. If the leading request is aborted, or
 * ends without notice (detected after 3 s), the next request takes over. Each request calls the
 * origin itself if the response must not be shared (see {@link isShareable}), or if its body is
 * incomplete 2 s after its headers.
 *
 * `send` throws the same errors as the wrapped origin. A request waits for others for at most its
 * `timeoutMs` and those 2 s. Then it calls the origin or fails, so the total is at most twice as
 * long.
 *
 * @example
 * ```ts
 * const origin = coalescedOrigin({ origin: createOrigin({ url: 'https://api.internal.example' }) })
 * app.get('/prices', proxy({ origin, coalesce: true }))
 * ```
 */
export function coalescedOrigin({ origin, now = Date.now }: CoalescedOriginOptions): Origin {
  const calls = new Map<string, SharedCall>()
  let sweptAtMs = now()

  /**
   * Removes calls of requests that have ended. Returns the bytes that the other calls have
   * reserved.
   */
  function sweep(): number {
    let bytes = 0
    sweptAtMs = now()
    for (const [key, call] of calls) {
      if (call.isAlive()) bytes += call.reservedBytes
      else calls.delete(key)
    }
    return bytes
  }

  async function lead(
    key: string,
    request: OriginRequest,
    predecessor: SharedCall | undefined,
    sinceMs: number,
  ): Promise<Response> {
    if (now() - sweptAtMs > LEASE_MS) sweep()
    const call = beginCall(now, predecessor)
    calls.set(key, call)
    function end(outcome: Outcome): void {
      call.end(outcome)
      if (calls.get(key) === call) calls.delete(key)
    }
    try {
      if (predecessor !== undefined) await stillAdmitted(request, sinceMs, end)
      const answer = await origin.send(request)
      if (!call.isFollowed || !isShareable(answer) || !reserve(call)) {
        end({ kind: 'private' })
        return answer
      }
      if (answer.body === null) {
        end({ kind: 'answered', answer: dataOf(answer, null) })
        return answer
      }
      const [own, others] = answer.body.tee()
      const sharing = share(answer, others).then(end)
      request.waitUntil?.(sharing)
      return new Response(own, answer)
    } catch (error) {
      end(error instanceof Unavailable ? { kind: 'failed', error } : { kind: 'abandoned' })
      throw error
    }
  }

  function reserve(call: SharedCall): boolean {
    if (sweep() + MAX_SHARED_BYTES > MAX_HELD_BYTES) return false
    call.reservedBytes = MAX_SHARED_BYTES
    return true
  }

  /** Polls until the call has an outcome. Returns `abandoned` if its request has ended. */
  async function follow(
    call: SharedCall,
    request: OriginRequest,
    sinceMs: number,
  ): Promise<Outcome> {
    call.isFollowed = true
    for (;;) {
      const waitedMs = now() - sinceMs
      if (call.outcome !== undefined) return call.outcome
      if (!call.isAlive()) return { kind: 'abandoned' }
      if (request.incoming.signal.aborted)
        throw new Denied({ code: 'request_malformed', check: 'client_gone' })
      if (waitedMs > request.timeoutMs + COLLECT_TIMEOUT_MS)
        throw new Unavailable('origin', 'timeout')
      await sleep(pollDelayMs(waitedMs))
    }
  }

  return {
    async send(request) {
      if (!mayShare(request)) return origin.send(request)
      const key = keyOf(request)
      const sinceMs = now()
      let call = calls.get(key)
      while (call !== undefined) {
        const outcome = await follow(call, request, sinceMs)
        if (outcome.kind === 'answered') return responseOf(outcome.answer)
        if (outcome.kind === 'failed') throw failureFor(outcome.error)
        if (outcome.kind === 'private') {
          await request.stillAdmitted?.(sinceMs)
          return origin.send(request)
        }
        const next: SharedCall | undefined = call.successor ?? calls.get(key)
        if (next === undefined || next === call) break
        call.successor = next
        call = next
      }
      return lead(key, request, call, sinceMs)
    },
  }
}

/**
 * Re-checks the admission of a request that waited. A refusal says nothing about the origin, so the
 * call is abandoned and the next request takes over.
 */
async function stillAdmitted(
  request: OriginRequest,
  sinceMs: number,
  end: (outcome: Outcome) => void,
): Promise<void> {
  try {
    await request.stillAdmitted?.(sinceMs)
  } catch (error) {
    end({ kind: 'abandoned' })
    throw error
  }
}

/** Reads the body for the waiting requests and returns the outcome. Never rejects. */
async function share(answer: Response, body: ReadableStream<Uint8Array>): Promise<Outcome> {
  try {
    const bytes = await collect(body, {
      maxBytes: MAX_SHARED_BYTES,
      timeoutMs: COLLECT_TIMEOUT_MS,
    })
    return bytes === undefined
      ? { kind: 'private' }
      : { kind: 'answered', answer: dataOf(answer, bytes) }
  } catch (cause) {
    return { kind: 'failed', error: new Unavailable('origin', 'unreachable', { cause }) }
  }
}

function dataOf({ status, statusText, headers }: Response, body: CollectedBody | null) {
  return { status, statusText, headers: [...headers], body } satisfies SharedAnswer
}

function responseOf({ status, statusText, headers, body }: SharedAnswer): Response {
  const fields = new Headers()
  for (const [name, value] of headers) fields.append(name, value)
  // The bytes already have the origin's encoding. Otherwise the platform would encode them again.
  return new Response(body, { status, statusText, headers: fields, encodeBody: 'manual' })
}
