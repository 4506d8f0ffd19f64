/** Sockets to an origin that read its response although it reads no more of the request. */
import type { Socket } from 'node:net'
import { buildConnector } from 'undici'

/** What the system reports for a write when the other side has closed the connection. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE'])
/** How long a failed write waits. What a slow client has not let the gateway read by then is lost, as is the end of its response. */
const REST_MS = 500

type Done = (error?: Error | null) => void

/**
 * Creates the function that connects to an origin. An origin may answer before it has read the request, with
 * 401 or 413, and close (RFC 9112 section 9.5). Then the next write fails, and Node destroys the socket, with the
 * response unread in it. Here such a write waits until the socket has been read to its end, for half a second at
 * most: neither the chunk nor the socket stays longer.
 */
export function originConnector(): buildConnector.connector {
  const connect = buildConnector({})
  return (options, connected) =>
    connect(options, (...result) => {
      // After an error, undici passes no second argument, whatever its types say.
      const [error, socket] = result
      if (error === null && socket) delayLoss(socket)
      connected(...result)
    })
}

function delayLoss(socket: Socket): void {
  const write = socket._write
  const writev = socket._writev
  const untilEnd =
    (done: Done): Done =>
    (error) => {
      if (CLOSED.has((error as NodeJS.ErrnoException | undefined)?.code))
        failAtEnd(socket, error, done)
      else done(error)
    }
  socket._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, untilEnd(done))
  if (writev !== undefined)
    socket._writev = (chunks, done) => writev.call(socket, chunks, untilEnd(done))
}

/** Reports the error of a write when nothing more can be read, or after {@link REST_MS}. */
function failAtEnd(socket: Socket, error: Error | null | undefined, done: Done): void {
  const timer = setTimeout(fail, REST_MS)
  socket.once('end', fail).once('close', fail)
  function fail(): void {
    clearTimeout(timer)
    socket.off('end', fail).off('close', fail)
    done(error)
  }
}
