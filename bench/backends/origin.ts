/** The origin and the queue of the benchmark, as a process of its own: cheap, and it counts. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'
import { ORIGIN_BODY, type OriginCounts } from '../backends.ts'

/** Longer than any pause between two layers, so that no socket is closed just as it is used. */
const KEEP_ALIVE_MS = 120_000
/** Where workerd posts a batch of queue messages. */
const QUEUE_PATH = '/batch'

/** What workerd wants to hear before it takes a batch for sent. */
const QUEUE_BODY = JSON.stringify({
  metadata: { metrics: { backlogCount: 0, backlogBytes: 0, oldestMessageTimestamp: 0 } },
})

const counts = { requests: 0, identified: 0, asserted: 0, auditEvents: 0 } satisfies OriginCounts

const headers = {
  'Content-Type': 'application/json',
  'Content-Length': Buffer.byteLength(ORIGIN_BODY),
}

const server = createServer((request, response) => {
  if (request.url === QUEUE_PATH) {
    void takeBatch(request)
    response.setHeader('Content-Type', 'application/json').end(QUEUE_BODY)
    return
  }
  counts.requests++
  if (request.headers['x-auth-subject'] !== undefined) counts.identified++
  if (request.headers['x-auth-assertion'] !== undefined) counts.asserted++
  request.resume()
  response.writeHead(200, headers).end(ORIGIN_BODY)
})
server.keepAliveTimeout = KEEP_ALIVE_MS

async function takeBatch(request: IncomingMessage): Promise<void> {
  const { messages } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as {
    readonly messages: readonly unknown[]
  }
  counts.auditEvents += messages.length
}

server.listen(0, HOST, () => {
  process.send?.({ url: `http://${HOST}:${(server.address() as AddressInfo).port}` })
})
process.on('message', () => process.send?.(counts))
process.on('disconnect', () => process.exit())
// The parent ends this; Ctrl-C reaches the whole group.
process.on('SIGINT', () => {})
