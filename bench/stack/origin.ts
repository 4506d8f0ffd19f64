/** Process with the origin and the queue of the benchmark. It counts requests and messages. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'
import { KEEP_ALIVE_MS, QUEUE_BODY, QUEUE_PATH } from '../chaos/dependencies.ts'
import { serveParent } from '../processes/child.ts'
import { ORIGIN_BODY, type OriginCounts } from './backends.ts'

/** Responses of this path do not end. */
const STREAM_PATH = '/streams'

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
  if (request.url === STREAM_PATH) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: open\n\n')
    return
  }
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
  const { port } = server.address() as AddressInfo
  serveParent({ url: `http://${HOST}:${port}` }, () => counts)
})
