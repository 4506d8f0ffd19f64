/** WebSocket upgrades (RFC 6455): checks the handshake, and closes sockets that must end. */
import type { Context } from 'hono'
import type { Principal } from '../access/principal.ts'
import { malformed, Unavailable } from '../errors.ts'
import { reportSocketEnd } from '../http/socket-end.ts'
import type { OpenStream } from '../streams/open-streams.ts'

/** RFC 6455 section 4.1: the base64 of 16 bytes. */
const KEY = /^[A-Za-z0-9+/]{22}==$/
const VERSION = '13'
/** `Upgrade` among the options of `Connection`. HTTP/2 does not use that header. */
const UPGRADE_OPTION = /(?:^|,)\s*upgrade\s*(?:,|$)/i
/** RFC 6455 section 5.5: a control frame has at most 125 bytes, two of which are the code. */
const MAX_REASON_BYTES = 123
/** RFC 6455 section 7.4.1: policy violation. */
const CLOSE_POLICY = 1008
/** RFC 6455 section 7.1.5: the received close frame had no code, so ours has none. */
const NO_STATUS_RECEIVED = 1005

/** Upgrades of a runtime. */
export interface Upgrades {
  /** Whether the connection of a request can be upgraded. Default: each can. */
  readonly isPossible?: (c: Context) => boolean
  /** Returns the response to an upgrade that the origin accepted; see `acceptUpgrade`. */
  accept(received: Response, stream: OpenStream | undefined): Response
}

/** Reports whether a request is a WebSocket upgrade. Any other `Upgrade` is ignored. */
export function isUpgrade(received: ReadonlyMap<string, string>): boolean {
  return received.get('upgrade')?.toLowerCase() === 'websocket'
}

/**
 * Throws `Denied` (`malformed_request`) for an opening handshake that RFC 6455 section 4.2.1 does
 * not allow, and for a page of an origin that is not in `allowed`: browsers send a user's cookies
 * without a CORS check (section 10.2). An anonymous caller passes only if the route lists origins:
 * without a token that expires, its socket would never be closed.
 */
export function refuseBadUpgrade(
  request: Request,
  allowed: readonly string[],
  caller: Principal | null,
): void {
  const { headers, method } = request
  const wellFormed =
    method === 'GET' &&
    UPGRADE_OPTION.test(headers.get('Connection') ?? 'upgrade') &&
    KEY.test(headers.get('Sec-WebSocket-Key') ?? '')
  if (wellFormed && headers.get('Sec-WebSocket-Version') !== VERSION)
    throw malformed('websocket_version')
  if (!wellFormed) throw malformed('websocket_handshake')
  if (caller === null && allowed.length === 0) throw malformed('websocket_anonymous')
  const origin = headers.get('Origin')
  if (origin !== null && !allowed.includes(origin)) throw malformed('websocket_origin')
}

/**
 * Returns the response to an upgrade that the origin accepted. Both ends are closed with 1008 and the
 * code of the problem if the stream must end. Without a stream, nothing closes them.
 */
export function acceptUpgrade(received: Response, stream: OpenStream | undefined): Response {
  const { webSocket: origin } = received
  if (origin === null) throw new Unavailable('origin', 'malformed')
  const headers = new Headers()
  const protocol = received.headers.get('Sec-WebSocket-Protocol')
  if (protocol !== null) headers.set('Sec-WebSocket-Protocol', protocol)
  // Without an end, the runtime can join the two sockets natively.
  if (stream === undefined) return new Response(null, { status: 101, webSocket: origin, headers })
  const { 0: client, 1: server } = new WebSocketPair()
  for (const socket of [server, origin]) {
    // A Blob must be read before it can be sent on, and later messages would overtake it.
    socket.binaryType = 'arraybuffer'
    // After the close frame of one end, the messages of the other end still pass.
    socket.accept({ allowHalfOpen: true })
  }
  const upgraded = new Response(null, { status: 101, webSocket: client, headers })
  const toClient = { socket: server, isClosed: false }
  const toOrigin = { socket: origin, isClosed: false }
  /** After the first close frame the request is no longer in flight. The other end may still send. */
  function ended(): void {
    if (toClient.isClosed && toOrigin.isClosed) stream?.closed()
    reportSocketEnd(upgraded)
  }
  stream.opened({
    cut({ problem }) {
      // A client may never answer the close frame.
      reportSocketEnd(upgraded)
      close(toClient, CLOSE_POLICY, problem.code)
      close(toOrigin, CLOSE_POLICY, problem.code)
    },
  })
  join(server, toOrigin, ended)
  join(origin, toClient, ended)
  return upgraded
}

/** One end, and whether it got a close frame. */
interface End {
  readonly socket: WebSocket
  isClosed: boolean
}

function join(from: WebSocket, to: End, ended: () => void): void {
  from.addEventListener('message', ({ data }) => {
    if (!to.isClosed) to.socket.send(data)
  })
  from.addEventListener('close', ({ code, reason }) => {
    close(to, code, reason)
    ended()
  })
  from.addEventListener('error', () => {
    close(to, 1011, '')
    ended()
  })
}

/** Closes a socket. Codes that may not be sent (RFC 6455 section 7.4) become 1011. */
function close(end: End, code: number, reason: string): void {
  const { socket } = end
  if (end.isClosed || socket.readyState === WebSocket.CLOSED) return
  end.isClosed = true
  if (code === NO_STATUS_RECEIVED) {
    socket.close()
    return
  }
  // workerd passes on reasons that are too long for a close frame, and refuses to send them.
  const text = new TextEncoder().encode(reason).length <= MAX_REASON_BYTES ? reason : ''
  const sendable =
    (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999)
  socket.close(sendable ? code : 1011, sendable ? text : '')
}
