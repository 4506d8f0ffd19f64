/** Clients that send exact bytes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Opens a connection and writes `text`, byte for byte. */
export async function dial(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text, 'latin1')
  return socket
}

export interface Reply {
  readonly status: number
  readonly headers: string
  readonly body: string
  /** Whether the connection ended before the message did. */
  readonly aborted: boolean
}

/** Sends one request and reads until its response is complete or the connection ends. */
export async function exchange(port: number, text: string): Promise<Reply> {
  const socket = await dial(port, text)
  let received = ''
  socket.setEncoding('latin1')
  const isComplete = (message: string) =>
    text.startsWith('HEAD ') ? message.endsWith('\r\n\r\n') : isWhole(message)
  await new Promise<void>((resolve) => {
    socket.on('data', (data: string) => {
      received += data
      if (isComplete(received)) resolve()
    })
    socket.on('close', () => resolve())
  })
  socket.destroy()
  const [head = '', body = ''] = split(received)
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0)
  return { status, headers: head, body: decode(head, body), aborted: !isComplete(received) }
}

function split(message: string): [head: string, body: string] {
  const at = message.indexOf('\r\n\r\n')
  return at < 0 ? [message, ''] : [message.slice(0, at), message.slice(at + 4)]
}

function isWhole(message: string): boolean {
  if (!message.includes('\r\n\r\n')) return false
  const [head, body] = split(message)
  if (/^HTTP\/1\.1 (?:1\d\d|204|304)/.test(head)) return true
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) return body.length >= Number(length)
  return /^transfer-encoding: chunked/im.test(head) && body.endsWith('0\r\n\r\n')
}

function decode(head: string, body: string): string {
  if (!/^transfer-encoding: chunked/im.test(head)) return body
  let rest = body
  let decoded = ''
  for (;;) {
    const size = Number.parseInt(rest, 16)
    const start = rest.indexOf('\r\n') + 2
    if (!(size > 0)) return decoded
    decoded += rest.slice(start, start + size)
    rest = rest.slice(start + size + 2)
  }
}
