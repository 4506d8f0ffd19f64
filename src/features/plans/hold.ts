/** Holds the slots of a request in flight until its response ends. */
import type { Context } from 'hono'
import type { RateLimit } from '../../access/admission/limit.ts'
import { replaceResponse } from '../../http/replaced-response.ts'
import { onSocketEnd } from '../../http/socket-end.ts'
import { waitUntilOf } from '../../middleware/context.ts'

const SWITCHING_PROTOCOLS = 101

/**
 * Runs the rest of the pipeline. Renews the slots meanwhile, and releases them when the body of the
 * response or its WebSocket ends, the client leaves, or the pipeline fails. If the gateway ends before,
 * the slots become free when their hold ends. A release that fails has the same effect.
 */
export async function holdSlots(
  limits: readonly RateLimit[],
  c: Context,
  next: () => Promise<void>,
): Promise<void> {
  const slots = limits.flatMap(({ slot }) => slot ?? [])
  const { promise: isReleased, resolve } = Promise.withResolvers<unknown>()
  // Registered now: the client may leave before the response ends.
  waitUntilOf(c)(isReleased)
  const renewal = setInterval(
    () => void Promise.all(slots.map((slot) => slot.renew())),
    Math.min(...slots.map(({ renewMs }) => renewMs)),
  )
  let isHeld = true
  function release(): void {
    if (!isHeld) return
    isHeld = false
    clearInterval(renewal)
    resolve(Promise.all(slots.map((slot) => slot.release())))
  }

  try {
    await next()
  } catch (error) {
    release()
    throw error
  }
  const response = c.res
  if (response.status === SWITCHING_PROTOCOLS) onSocketEnd(response, release)
  // A stage may replace the response to an error, whose body then has no reader.
  else if (response.body === null || c.error !== undefined) release()
  else {
    const bytes = Number(response.headers.get('Content-Length') ?? Number.POSITIVE_INFINITY)
    replaceResponse(c, new Response(endingWith(response.body, bytes, release), response))
  }
}

/**
 * Returns the same bytes, and calls `ended` before the last of them are passed on, so that a client
 * that waits for them finds the slot free. `bytes` is the length of the body; infinite: unknown.
 */
function endingWith(
  body: ReadableStream<Uint8Array>,
  bytes: number,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let left = bytes
  return new ReadableStream<Uint8Array>(
    {
      async pull(stream) {
        try {
          const { done, value } = await reader.read()
          left -= value?.length ?? 0
          if (done || left <= 0) ended()
          if (done) stream.close()
          else stream.enqueue(value)
        } catch (error) {
          ended()
          stream.error(error)
        }
      },
      async cancel(reason) {
        ended()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
