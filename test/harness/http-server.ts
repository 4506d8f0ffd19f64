/** A real HTTP server with a handler of the test. */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

/** Longer than any test, so that no client reuses a connection while this end closes it. */
export const KEEP_ALIVE_MS = 600_000

export interface TestServer {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** Listens on a free loopback port. A client may disconnect in the middle of its body. */
export async function startHttpServer(
  listener: RequestListener,
  onUpgrade?: (request: IncomingMessage, socket: Duplex) => void,
): Promise<TestServer> {
  const server = createServer(async (request, response) => {
    try {
      await listener(request, response)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
      response.destroy()
    }
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  if (onUpgrade !== undefined) server.on('upgrade', onUpgrade)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
