/** HTTP as bytes, for requests that no client library sends. */
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly text: string
}

/**
 * Sends `request` with CRLF line ends, and reads until the peer closes the connection.
 * `status` is 0 if it closed without an answer.
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

/** Sends a GET with exactly `target`, which no URL parser has changed. */
export function getRaw(
  url: string,
  target: string,
  headers: readonly string[] = [],
): Promise<RawAnswer> {
  const lines = [`GET ${target} HTTP/1.1`, 'Host: gateway.test', 'Connection: close', ...headers]
  return sendRaw(url, Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'))
}
