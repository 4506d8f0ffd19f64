/** A real HTTP server that does what a test tells it to. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TestServer {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** Listens on a free loopback port. A caller may leave in the middle of its body. */
export async function startHttpServer(listener: RequestListener): Promise<TestServer> {
  const server = createServer(async (request, response) => {
    try {
      await listener(request, response)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
      response.destroy()
    }
  })
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
