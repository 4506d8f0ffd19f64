/** Serves the test Worker of this folder from Node's own HTTP server, without any framework. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { build } from './worker.ts'

/** Listens on a free loopback port; forwards to `originUrl`. */
export async function startNode(originUrl: string) {
  const context = { waitUntil() {}, passThroughOnException() {} } as unknown as ExecutionContext
  const env = { ORIGIN_URL: originUrl }
  const app = build(env)
  const server = createServer(async (incoming, outgoing) => {
    const { rawHeaders, method = 'GET' } = incoming
    const headers = new Headers()
    for (let at = 0; at < rawHeaders.length; at += 2)
      headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
    const url = `http://${incoming.headers.host}${incoming.url}`
    const answer = await app.fetch(new Request(url, { method, headers }), env, context)
    outgoing.writeHead(answer.status, [...answer.headers].flat())
    if (answer.body === null) outgoing.end()
    else Readable.fromWeb(answer.body as never).pipe(outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
