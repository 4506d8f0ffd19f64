/** An origin in the scenario's own process that holds its responses until it is told to send them. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'

/** Longer than any pause of a scenario. */
const KEEP_ALIVE_MS = 120_000

export interface HoldingOrigin {
  readonly url: string
  /** Returns the number of requests since the start. */
  requests(): number
  /** Answers all waiting requests. */
  release(): void
  close(): Promise<void>
}

/** Starts a server that answers with `body`, but only after `release`. Request bodies are discarded. */
export async function startHoldingOrigin(body: string): Promise<HoldingOrigin> {
  const held: ServerResponse[] = []
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    request.resume()
    held.push(response)
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    release() {
      for (const response of held.splice(0))
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
    },
    async close() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
