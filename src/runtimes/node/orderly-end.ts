/** Ends a server without a failed request. */
import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import { Server as Listener } from 'node:net'
import { createProgressList, type ProgressEntry } from '../../isolate/progress-list.ts'

/**
 * At the end, an idle connection stays open this long, because a request may be on its way. The response to it
 * closes the connection.
 */
const IDLE_MS = 500

interface OpenResponse extends ProgressEntry<OpenResponse> {
  readonly outgoing: ServerResponse
}

/**
 * Returns a function that accepts no more connections, and resolves when all requests are answered.
 * After `graceMs`, in milliseconds, it cuts their connections. Call it once.
 */
export function orderlyEnd(http: Server): (graceMs: number) => Promise<void> {
  /** Responses that have not ended. */
  const open = createProgressList<OpenResponse>()
  let isEnding = false
  let cutsIdle = false

  http.prependListener('request', (_, outgoing) => {
    const entry: OpenResponse = { outgoing }
    open.add(entry)
    outgoing.once('close', () => {
      open.remove(entry)
      if (cutsIdle) http.closeIdleConnections()
    })
    if (isEnding) outgoing.setHeader('Connection', 'close')
  })

  function cutIdle(): void {
    cutsIdle = true
    http.close()
  }

  return async function end(graceMs) {
    isEnding = true
    for (let entry = open.oldest; entry !== undefined; entry = entry.newer)
      if (!entry.outgoing.headersSent) entry.outgoing.setHeader('Connection', 'close')
    const closed = once(http, 'close')
    // `http.close()` would also cut idle connections, at once.
    Listener.prototype.close.call(http)
    const timers = [
      setTimeout(cutIdle, Math.min(IDLE_MS, graceMs)),
      setTimeout(() => http.closeAllConnections(), graceMs),
    ]
    await closed
    for (const timer of timers) clearTimeout(timer)
  }
}
