/** A WebSocket client that sends any bytes, and reports what it receives (RFC 6455). */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface FrameOptions {
  readonly opcode?: number
  readonly isFinal?: boolean
  /** The three reserved bits, as a number from 0 to 7. */
  readonly reserved?: number
  readonly isMasked?: boolean
}

export function frame(
  payload: Buffer | string = '',
  { opcode = OPCODE.text, isFinal = true, reserved = 0, isMasked = true }: FrameOptions = {},
): Buffer {
  const data = Buffer.from(payload)
  const first = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode
  const mask = isMasked ? randomBytes(4) : Buffer.alloc(0)
  const masked = isMasked
    ? Buffer.from(data.map((byte: number, at: number) => byte ^ (mask[at % 4] as number)))
    : data
  const bit = isMasked ? 0x80 : 0
  let head: Buffer
  if (data.length < 126) head = Buffer.from([first, bit | data.length])
  else if (data.length < 65_536) {
    head = Buffer.from([first, bit | 126, 0, 0])
    head.writeUInt16BE(data.length, 2)
  } else {
    head = Buffer.alloc(10)
    head.set([first, bit | 127])
    head.writeBigUInt64BE(BigInt(data.length), 2)
  }
  return Buffer.concat([head, mask, masked])
}

/** The payload of a close frame. */
export function closing(code: number, reason: Buffer | string = ''): Buffer {
  const head = Buffer.alloc(2)
  head.writeUInt16BE(code)
  return Buffer.concat([head, Buffer.from(reason)])
}

/** What a client sees, whatever the fragments are: messages and pongs in order, and the close frame. */
export interface Seen {
  readonly messages: readonly string[]
  readonly pongs: readonly string[]
  /** The code of the close frame; 1005: it has none; undefined: there was no close frame. */
  readonly close: number | undefined
}

const END_MS = 10_000

/** Opens a WebSocket, writes `parts`, and reads until the connection ends. */
export function converse(
  url: string,
  headers: Readonly<Record<string, string>>,
  parts: readonly Buffer[],
): Promise<Seen> {
  const { hostname, port, pathname } = new URL(url)
  const messages: string[] = []
  const pongs: string[] = []
  let close: number | undefined
  let unread = Buffer.alloc(0)
  let isOpen = false
  let begun: { opcode: number; data: Buffer[] } | undefined

  function take(opcode: number, isFinal: boolean, payload: Buffer): void {
    if (opcode === OPCODE.pong) pongs.push(digest(payload))
    else if (opcode === OPCODE.close) close = payload.length < 2 ? 1005 : payload.readUInt16BE()
    else if (opcode <= OPCODE.binary) {
      begun ??= { opcode, data: [] }
      begun.data.push(payload)
      if (!isFinal) return
      const kind = begun.opcode === OPCODE.text ? 'text' : 'binary'
      messages.push(`${kind} ${digest(Buffer.concat(begun.data))}`)
      begun = undefined
    }
  }

  function read(): void {
    while (unread.length >= 2) {
      const [first, second] = unread as unknown as [number, number]
      const short = second & 0x7f
      const from = short === 127 ? 10 : short === 126 ? 4 : 2
      if (unread.length < from) return
      const length =
        short === 127
          ? Number(unread.readBigUInt64BE(2))
          : short === 126
            ? unread.readUInt16BE(2)
            : short
      if (unread.length < from + length) return
      take(first & 0x0f, (first & 0x80) !== 0, unread.subarray(from, from + length))
      unread = unread.subarray(from + length)
    }
  }

  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no end after ${JSON.stringify({ messages, pongs, close })}`))
    }, END_MS)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      if (isOpen) resolve({ messages, pongs, close })
      else reject(new Error(unread.toString('latin1').slice(0, 200)))
    })
    const fields = {
      Host: `${hostname}:${port}`,
      Upgrade: 'websocket',
      Connection: 'Upgrade',
      'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
      'Sec-WebSocket-Version': '13',
      ...headers,
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`GET ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n`)
    socket.on('data', (chunk) => {
      unread = Buffer.concat([unread, chunk])
      if (!isOpen) {
        const at = unread.indexOf('\r\n\r\n')
        if (at < 0) return
        if (!unread.toString('latin1').startsWith('HTTP/1.1 101')) {
          socket.destroy()
          return
        }
        isOpen = true
        unread = unread.subarray(at + 4)
        // At once: a server that refuses the first frame would reset a connection on which others arrive,
        // and its close frame may be lost.
        socket.write(Buffer.concat(parts))
      }
      read()
      // The client does not end the connection before the server: it sees everything.
      if (close !== undefined) socket.end()
    })
    socket.on('end', () => socket.end())
  })
}

/** Short payloads as text, long ones by their length and their first and last byte. */
const digest = (data: Buffer): string =>
  data.length <= 40
    ? data.toString('hex')
    : `${data.length} bytes ${data.subarray(0, 4).toString('hex')}..${data.subarray(-4).toString('hex')}`
