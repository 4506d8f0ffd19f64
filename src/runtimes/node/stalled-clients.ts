/** Ends connections whose other end neither reads nor sends what is expected of it. */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { LatestResponse } from './upgrades.ts'

/** A stall is noticed at most this share of its time late, and no later than after {@link MAX_STEP_MS}. */
const STEPS = 10
const MAX_STEP_MS = 5_000

export type StallWatch = ReturnType<typeof watchStalls>

/** What the last look at a connection found. */
interface Watched {
  /** Bytes that have passed so far. Undefined: nothing was waiting. */
  progress: string | undefined
  sinceMs: number
}

/**
 * Destroys connections of the server, WebSockets included, in two cases: bytes wait for the client, and it
 * reads none of them for `ms`; or the gateway waits for bytes of a request's body, and none arrive
 * for `ms`. Each byte restarts this time. A connection on which no bytes wait stays open, however
 * old it is: a silent event stream, a long poll, an idle WebSocket.
 *
 * `latest` returns the latest response of a connection. Keeping the latest request here as well would cost a
 * listener for each request, and an old object that refers to a young one.
 */
export function watchStalls(server: Server, ms: number, latest: LatestResponse) {
  const open = new Map<Duplex, Watched>()
  let stallMs = ms
  let timer = start()

  function start(): NodeJS.Timeout {
    return setInterval(look, Math.min(stallMs / STEPS, MAX_STEP_MS)).unref()
  }

  function add(socket: Duplex): void {
    // A connection is announced again after an upgrade that the server ignores.
    if (open.has(socket)) return
    open.set(socket, { progress: undefined, sinceMs: 0 })
    socket.once('close', () => open.delete(socket))
  }

  function look(): void {
    const nowMs = performance.now()
    for (const [socket, watched] of open) {
      const progress = describeProgress(socket as Socket, latest(socket))
      if (progress !== watched.progress) {
        watched.progress = progress
        watched.sinceMs = nowMs
      } else if (progress !== undefined && nowMs - watched.sinceMs >= stallMs) socket.destroy()
    }
  }

  server.on('connection', add).on('secureConnection', add)
  server.once('close', () => clearInterval(timer))
  return {
    /** Watches a connection of a WebSocket's origin, which may not read either. */
    add,
    /** Changes the time of all connections, in milliseconds. */
    limit(next: number) {
      if (next === stallMs) return
      stallMs = next
      clearInterval(timer)
      timer = start()
    },
  }
}

/** Returns a text that changes when a byte passes, or undefined if neither end waits for one. */
function describeProgress(socket: Socket, latest: ServerResponse | undefined): string | undefined {
  if (socket.writableLength > 0)
    return `out ${socket.bytesWritten - socket.writableLength} ${queuedIn(socket)}`
  // The body flows while a reader waits for it.
  const incoming = latest?.req
  if (incoming?.readableFlowing && !incoming.complete) return `in ${socket.bytesRead}`
  return undefined
}

/**
 * Returns the bytes of the write in progress that the system has not taken. Node's own time-out of sockets
 * uses this number, and has no public name for it. Without it, a slow client would have to read a
 * whole chunk in time.
 */
function queuedIn(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null }
  return handle?.writeQueueSize ?? 0
}
