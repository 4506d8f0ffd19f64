/** Forwards requests to the origin with undici, and nothing more. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Pool } from 'undici'
import { HOP_BY_HOP, ORIGIN_URL } from './environment.ts'

const pool = new Pool(ORIGIN_URL, { connections: 256 })

/** The headers of a request without those of its connection. */
export function headersOf({ rawHeaders }: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    if (!HOP_BY_HOP.has(name)) headers[name] = rawHeaders[at + 1] as string
  }
  return headers
}

/** Calls the origin and passes its response on. `onEnd` is called after a complete response. */
export function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  headers: Record<string, string>,
  onEnd: () => void = () => {},
): void {
  const { url: path = '', method = 'GET' } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  pool.dispatch(
    { path, method: method as 'GET', headers, body: hasBody ? incoming : null },
    {
      onRequestStart() {},
      onResponseStart(_, status, fields) {
        outgoing.writeHead(status, fields)
      },
      onResponseData(_, chunk) {
        outgoing.write(chunk)
      },
      onResponseEnd() {
        outgoing.end()
        onEnd()
      },
      onResponseError() {
        if (outgoing.headersSent) outgoing.destroy()
        else outgoing.writeHead(502).end()
      },
    },
  )
}
