/** HTTP as bytes: what no client library would send. */
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly text: string
}

/**
 * Sends `request`, its lines ended with CRLF already, and reads until the other side closes.
 * `status` is 0 where the connection was closed without an answer.
 */
export function sendRaw(url: string, request: string | Buffer): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => socket.write(request))
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text })
    })
  })
}

/** A GET of exactly `target`, which no URL parser has seen. */
export function getRaw(
  url: string,
  target: string,
  headers: readonly string[] = [],
): Promise<RawAnswer> {
  const lines = [`GET ${target} HTTP/1.1`, 'Host: gateway.test', 'Connection: close', ...headers]
  return sendRaw(url, Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'))
}
