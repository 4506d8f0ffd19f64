/** Relays the bytes of a WebSocket between a client and an origin, and closes both ends. */
import type { Duplex } from 'node:stream'
import { FrameBoundary } from './frame-boundary.ts'

/** RFC 6455 section 7.4.1. */
export type CloseCode = 1001 | 1008

export interface Relay {
  /** Sends a close frame to both ends, between two frames, and then ends both connections. */
  close(code: CloseCode, reason: string): void
}

/** How long a frame in progress, and then the other end's own close frame, may take. */
const CLOSE_MS = 1_000
const FINAL_CLOSE_FRAME = 0x88
const MASKED = 0x80
/** Any mask is allowed that a page cannot choose; the frame has no bytes of a page. */
const ZERO_MASK = Buffer.alloc(4)

/**
 * Joins two connections whose handshakes are complete. Frames pass unchanged and no faster than the
 * receiver reads them. If one connection ends, so does the other. `ended` is called once.
 */
export function relay(client: Duplex, origin: Duplex, ended: () => void): Relay {
  const toClient = pass(origin, client)
  const toOrigin = pass(client, origin)
  let isOpen = true
  function end(): void {
    client.destroy()
    origin.destroy()
    if (isOpen) ended()
    isOpen = false
  }
  for (const socket of [client, origin]) socket.on('error', end).on('close', end)
  // It may have ended before it had listeners here.
  if (client.destroyed || origin.destroyed) process.nextTick(end)
  return {
    close(code, reason) {
      toClient.finish(closeFrame(code, reason, false))
      toOrigin.finish(closeFrame(code, reason, true))
      setTimeout(end, CLOSE_MS).unref()
    },
  }
}

/** Passes bytes on. After `finish`, `last` follows the frame in progress, and nothing follows it. */
function pass(from: Duplex, to: Duplex) {
  const boundary = new FrameBoundary()
  let last: Buffer | undefined
  function finishWith(frame: Buffer): void {
    from.off('data', onData)
    from.resume()
    to.end(frame)
  }
  function onData(chunk: Buffer): void {
    const complete = boundary.read(chunk)
    if (last !== undefined && (complete > 0 || boundary.isBetweenFrames)) {
      to.write(chunk.subarray(0, complete))
      finishWith(last)
    } else if (!to.write(chunk)) from.pause()
  }
  from.on('data', onData)
  from.on('end', () => to.end())
  to.on('drain', () => from.resume())
  return {
    finish(frame: Buffer) {
      if (last !== undefined || to.writableEnded) return
      last = frame
      if (boundary.isBetweenFrames) finishWith(frame)
    },
  }
}

/** Frames of clients are masked (RFC 6455 section 5.3). */
function closeFrame(code: CloseCode, reason: string, isMasked: boolean): Buffer {
  const text = Buffer.from(reason)
  const payload = Buffer.alloc(2 + text.length)
  payload.writeUInt16BE(code)
  text.copy(payload, 2)
  const header = Buffer.from([FINAL_CLOSE_FRAME, payload.length | (isMasked ? MASKED : 0)])
  return Buffer.concat(isMasked ? [header, ZERO_MASK, payload] : [header, payload])
}
