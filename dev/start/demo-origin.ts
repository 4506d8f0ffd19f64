/** An origin for a project that has none yet: it answers every request with what it received. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HOST } from './settings.ts'

export interface DemoOrigin {
  readonly url: string
  close(): Promise<void>
}

/** Starts the server on a free port of loopback. */
export async function startDemoOrigin(): Promise<DemoOrigin> {
  const server = createServer((request, response) => {
    request.resume()
    const { method, url: path, headers } = request
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(`${JSON.stringify({ origin: 'demo', method, path, caller: callerOf(headers) })}\n`)
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Returns the identity that the gateway sends in headers. */
function callerOf(headers: IncomingHttpHeaders) {
  return {
    subject: headers['x-auth-subject'] ?? null,
    roles: headers['x-auth-roles']?.toString().split(',').map(decodeURIComponent) ?? [],
    requestId: headers['x-request-id'] ?? null,
  }
}
