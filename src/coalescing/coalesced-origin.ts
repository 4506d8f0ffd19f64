/** Makes one call to the origin out of many that are the same and come at once. */
import { Denied, Unavailable } from '../errors.ts'
import type { Origin, OriginRequest } from '../origin.ts'
import { sleep } from '../timers.ts'
import { type CollectedBody, collect } from './collect.ts'
import { isShareable, keyOf, MAX_SHARED_BYTES, mayShare } from './eligibility.ts'
import {
  beginCall,
  failureFor,
  LEASE_MS,
  type Outcome,
  type SharedAnswer,
  type SharedCall,
} from './shared-call.ts'

/** A body that takes longer once its headers are there is not waited for. */
const COLLECT_TIMEOUT_MS = 2_000
/** What an isolate of 128 MB can spare for answers that are on their way. */
const MAX_HELD_BYTES = 8_388_608
/** How soon a request looks again whether the answer is there; later, an eighth of its wait. */
const MIN_POLL_MS = 20
const MAX_POLL_MS = 250

export interface CoalescedOriginOptions {
  readonly origin: Origin
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/**
 * Wraps an origin so that requests which are the same (GET, URL, and every forwarded header but ids
 * and the assertion, so also the caller) and come while one of them is under way share its call. It
 * is no cache: who comes when the answer is complete, or has begun and nobody was waiting for it,
 * asks anew. A shared answer may show the origin as it was when the first of them asked.
 *
 * On Workers a request must not await what another one has begun, so those who wait look again and
 * again for data. They are told the failure, too, if the origin fails. If the one who asked leaves or
 * dies (seen after 3 s), the next asks. Where the answer is not for sharing (see
 * {@link isShareable}), or not there 2 s after its headers, each asks for itself.
 *
 * `send` throws what the origin's does; a request waits for others at most its `timeoutMs` and those
 * 2 s before it asks or fails, so at most twice as long in all.
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

  /** Forgets calls whose request has died, and says what the others may come to hold. */
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

  /** Resolves once there is something that the request can go by. */
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
      await sleep(Math.min(Math.max(waitedMs / 8, MIN_POLL_MS), MAX_POLL_MS))
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

/** Whoever may not ask any more says nothing of the origin: the next one asks. */
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

/** Never rejects. */
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
  // The bytes are as the origin sent them; the platform would encode them once more.
  return new Response(body, { status, statusText, headers: fields, encodeBody: 'manual' })
}
