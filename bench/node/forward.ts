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

/**
 * Calls the origin and passes its response on. `record` is called with the status. If it returns a
 * promise, no byte of the response is sent before that resolves, and none if it rejects.
 */
export function forward(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  headers: Record<string, string>,
  record: (status: number) => Promise<unknown> | undefined = () => undefined,
): void {
  const { url: path = '', method = 'GET' } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  let recorded: Promise<unknown> | undefined
  const fail = () => {
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502).end()
  }
  pool.dispatch(
    { path, method: method as 'GET', headers, body: hasBody ? incoming : null },
    {
      onRequestStart() {},
      onResponseStart(_, status, fields) {
        recorded = record(status)
        if (recorded !== undefined) {
          outgoing.cork()
          recorded.then(
            () => outgoing.uncork(),
            () => outgoing.destroy(),
          )
        }
        outgoing.writeHead(status, fields)
      },
      onResponseData(_, chunk) {
        outgoing.write(chunk)
      },
      onResponseEnd() {
        if (recorded === undefined) outgoing.end()
        else
          recorded.then(
            () => outgoing.end(),
            () => {},
          )
      },
      onResponseError: fail,
    },
  )
}
