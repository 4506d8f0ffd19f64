/** A configurable origin in the scenario's own process, which counts requests. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'

/** Longer than any pause of a scenario. */
const KEEP_ALIVE_MS = 120_000

export interface OddOrigin {
  readonly url: string
  /** Returns the number of requests since the start. */
  requests(): number
  connections(): number
  close(): Promise<void>
}

/** Starts the server. Calls `answer` for each request; request bodies are discarded. */
export async function startOddOrigin(
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<OddOrigin> {
  let [requests, connections] = [0, 0]
  const server = createServer((request, response) => {
    requests++
    request.resume()
    answer(response, request)
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.on('connection', () => connections++)
  server.listen(0, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    connections: () => connections,
    async close() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

export interface HoldingOrigin extends OddOrigin {
  /** Answers all waiting requests. */
  release(): void
}

/**
 * Starts a server that answers with `body`, but only after `release`. On paths that end with
 * `brokenPath` it closes the connection at once.
 */
export async function startHoldingOrigin(
  body: string,
  brokenPath?: string,
): Promise<HoldingOrigin> {
  const held: ServerResponse[] = []
  const origin = await startOddOrigin((response, { url = '' }) => {
    if (brokenPath !== undefined && url.endsWith(brokenPath)) response.destroy()
    else held.push(response)
  })
  return {
    ...origin,
    release() {
      for (const response of held.splice(0)) {
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(body)
      }
    },
  }
}
