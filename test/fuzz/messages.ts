/** The bytes that a client and an origin exchange in a case. */
import { createHash } from 'node:crypto'
import type { Case } from './plan.ts'

/** RFC 6455 section 1.3. */
const SOCKET_KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const HANDSHAKE_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const CHUNK_BYTES = 8_192
const FRAME_BYTES = 1_000
const EVENT_BYTES = 500
/** Status 1000. */
const CLOSE_FRAME = Buffer.from([0x88, 0x02, 0x03, 0xe8])
const CRLF = '\r\n'

export const END_OF_HEAD = `${CRLF}${CRLF}`

const head = (...lines: readonly string[]) => lines.join(CRLF) + END_OF_HEAD
const filler = (bytes: number) => Buffer.alloc(bytes, 'x')
const pathOf = ({ kind, route, id }: Case) => `/${kind}/${route}/${id}`

/** Returns the id of the case in a request's head, or undefined if it has none. */
export function idIn(request: string): number | undefined {
  const [, id] = /^\w+ \/\w+\/\d+\/(\d+) /.exec(request) ?? []
  return id === undefined ? undefined : Number(id)
}

/** Returns the request as the client sends it. That of `socket` includes its frames. */
export function requestOf(of: Case): Buffer {
  const { kind, uploadBytes } = of
  const method = kind === 'upload' || kind === 'chunked' ? 'POST' : 'GET'
  const lines = [
    `${method} ${pathOf(of)} HTTP/1.1`,
    'Host: gateway.test',
    'CF-Connecting-IP: 192.0.2.1',
  ]
  switch (kind) {
    case 'get':
    case 'stream':
      return Buffer.from(head(...lines))
    case 'upload':
      return Buffer.concat([
        Buffer.from(head(...lines, `Content-Length: ${uploadBytes}`)),
        filler(uploadBytes),
      ])
    case 'chunked':
      return Buffer.concat([
        Buffer.from(head(...lines, 'Transfer-Encoding: chunked')),
        chunked(filler(uploadBytes), CHUNK_BYTES),
      ])
    case 'socket':
      return Buffer.concat([
        Buffer.from(
          head(
            ...lines,
            'Upgrade: websocket',
            'Connection: Upgrade',
            `Sec-WebSocket-Key: ${SOCKET_KEY}`,
            'Sec-WebSocket-Version: 13',
          ),
        ),
        frames(uploadBytes, true),
      ])
  }
}

/**
 * Returns the response as the origin sends it. That of `socket` includes its frames. `key` is that of the
 * handshake: workerd sends its own.
 */
export function responseOf({ kind, answerBytes, isAnswerChunked }: Case, key = SOCKET_KEY): Buffer {
  if (kind === 'socket') {
    const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
    const accept = createHash('sha1')
      .update(key + HANDSHAKE_GUID)
      .digest('base64')
    const accepted = head(...lines, `Sec-WebSocket-Accept: ${accept}`)
    return Buffer.concat([Buffer.from(accepted), frames(answerBytes, false), CLOSE_FRAME])
  }
  if (kind === 'stream')
    return Buffer.concat([
      Buffer.from(
        head('HTTP/1.1 200 OK', 'Content-Type: text/event-stream', 'Transfer-Encoding: chunked'),
      ),
      chunked(filler(answerBytes), EVENT_BYTES),
    ])
  const framing = isAnswerChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${answerBytes}`
  const body = filler(answerBytes)
  return Buffer.concat([
    Buffer.from(head('HTTP/1.1 200 OK', framing)),
    isAnswerChunked ? chunked(body, CHUNK_BYTES) : body,
  ])
}

export const EARLY_RESPONSE = Buffer.from(
  `${head('HTTP/1.1 413 Content Too Large', 'Connection: close', 'Content-Length: 2')}no`,
)

function chunked(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size)
    parts.push(Buffer.from(part.length.toString(16) + CRLF), part, Buffer.from(CRLF))
  }
  return Buffer.concat([...parts, Buffer.from(`0${END_OF_HEAD}`)])
}

/** Returns binary frames (RFC 6455 section 5.2) of `bytes` in all. Those of clients are masked. */
function frames(bytes: number, isMasked: boolean): Buffer {
  const parts: Buffer[] = []
  for (let left = bytes; left > 0; left -= FRAME_BYTES) {
    const payload = filler(Math.min(left, FRAME_BYTES))
    const header = Buffer.from([0x82, (isMasked ? 0x80 : 0) | 126, 0, 0])
    header.writeUInt16BE(payload.length, 2)
    // A mask of zeros leaves the payload as it is. RFC 6455 section 5.2: short lengths have one byte.
    const short = Buffer.from([0x82, (isMasked ? 0x80 : 0) | payload.length])
    parts.push(payload.length < 126 ? short : header)
    parts.push(isMasked ? Buffer.alloc(4) : Buffer.alloc(0), payload)
  }
  return Buffer.concat(parts)
}

export interface Received {
  /** 0: none. */
  readonly status: number
  readonly isComplete: boolean
  /** Bytes of the body, without the framing. */
  readonly bodyBytes: number
  /** Bytes after the response. */
  readonly extraBytes: number
  /** Whether the response says that the connection ends. */
  readonly isLast: boolean
  /** Whether the response says when to send the request again. */
  readonly hasRetryAfter: boolean
}

/** Reads what a client has received. */
export function read(received: Buffer): Received {
  const end = received.indexOf(END_OF_HEAD)
  const none = {
    status: 0,
    isComplete: false,
    bodyBytes: 0,
    extraBytes: 0,
    isLast: true,
    hasRetryAfter: false,
  }
  if (end === -1) return none
  const text = received.subarray(0, end).toString('latin1')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)
  const isLast = /^connection: close\r?$/im.test(text)
  const hasRetryAfter = /^retry-after: \d+\r?$/im.test(text)
  const body = received.subarray(end + END_OF_HEAD.length)
  // The end of the connection ends a WebSocket.
  if (status === 101) return { ...none, status, bodyBytes: body.length }
  if (/^transfer-encoding: chunked\r?$/im.test(text))
    return { status, isLast, hasRetryAfter, ...readChunks(body) }
  const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? Number.NaN)
  if (Number.isNaN(length)) return { ...none, status, bodyBytes: body.length }
  return {
    status,
    isLast,
    hasRetryAfter,
    isComplete: body.length >= length,
    bodyBytes: Math.min(body.length, length),
    extraBytes: Math.max(0, body.length - length),
  }
}

function readChunks(body: Buffer): Pick<Received, 'isComplete' | 'bodyBytes' | 'extraBytes'> {
  let bodyBytes = 0
  for (let at = 0; at < body.length; ) {
    const line = body.indexOf(CRLF, at)
    if (line === -1) break
    const size = Number.parseInt(body.subarray(at, line).toString('latin1'), 16)
    if (size === 0) {
      const after = line + END_OF_HEAD.length
      return {
        bodyBytes,
        isComplete: body.length >= after,
        extraBytes: Math.max(0, body.length - after),
      }
    }
    bodyBytes += Math.min(size, Math.max(0, body.length - line - CRLF.length))
    at = line + CRLF.length + size + CRLF.length
  }
  return { isComplete: false, bodyBytes, extraBytes: 0 }
}
