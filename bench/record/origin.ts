/**
 * The origin of the recorded run. It runs in the process of its clients and records arrivals by
 * their clock.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'

/** Header with the number of a request. */
export const NUMBER_HEADER = 'x-record-number'

/** Longer than any pause, so that no socket is closed when it is about to be used. */
const KEEP_ALIVE_MS = 120_000
/** Path to which workerd posts batches of queue messages, and its expected response. */
const QUEUE_PATH = '/batch'
const QUEUE_BODY = JSON.stringify({
  metadata: { metrics: { backlogCount: 0, backlogBytes: 0, oldestMessageTimestamp: 0 } },
})

/**
 * Starts the origin. Calls `onArrival` with the number of each request when it arrives; NaN: it has
 * none.
 */
export async function startOrigin(onArrival: (id: number) => void) {
  const server = createServer((request, response) => {
    const isBatch = request.url === QUEUE_PATH
    if (!isBatch) onArrival(Number(request.headers[NUMBER_HEADER] ?? Number.NaN))
    request.resume()
    response.setHeader('Content-Type', 'application/json').end(isBatch ? QUEUE_BODY : '[]')
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.listen(0, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
