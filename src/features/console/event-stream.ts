/** Streams of server-sent events, for as long as their visitor has the right. */
import { NO_STORE } from '../../http/response-headers.ts'
import type { Desk } from './page.ts'

/** Then the browser connects again, with its session. */
const LIFE_MS = 300_000

interface Source {
  /** Returns the next text. Undefined: the visitor lost the right, and the stream ends. */
  poll(): Promise<string | undefined>
  /** Returns the milliseconds until the next poll. `tookMs`: how long the last one took. */
  pauseMs(tookMs: number): number
}

/**
 * Returns a response that sends what `poll` returns. It admits the visitor again before each poll, and ends after five
 * minutes. Throws `Denied` if the visitor has too many streams.
 */
export function eventStream(desk: Desk, { poll, pauseMs }: Source): Response {
  const encoder = new TextEncoder()
  const endMs = Date.now() + LIFE_MS
  const release = desk.holdStream(endMs)
  let tookMs: number | undefined
  let isCancelled = false
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(encoder.encode('retry: 2000\n\n'))
    },
    async pull(controller) {
      const waitMs = tookMs === undefined ? 0 : pauseMs(tookMs)
      if (waitMs > 0) await new Promise((done) => setTimeout(done, waitMs))
      if (isCancelled) return
      const beganMs = Date.now()
      try {
        await desk.readmit()
        const text = await poll()
        tookMs = Date.now() - beganMs
        if (text !== undefined && Date.now() <= endMs)
          return controller.enqueue(encoder.encode(text))
      } catch {
        // The stream ends, and the browser connects again.
      }
      release()
      if (!isCancelled) controller.close()
    },
    cancel() {
      isCancelled = true
      release()
    },
  })
  return new Response(stream, {
    headers: { ...NO_STORE, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
  })
}
