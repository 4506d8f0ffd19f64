/** A server that adds a token to each request of the conformance suite, which sends none. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TokenFront {
  /** The URL for the suite, which compares it with `PUBLIC_URL`. */
  readonly url: string
  /** Sets the gateway that gets the requests. */
  to(gateway: string): void
  close(): void
}

/** Starts the server before its gateway, whose `PUBLIC_URL` is the URL of the server. */
export async function startTokenFront(token: string): Promise<TokenFront> {
  let port = 0
  const front = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const forwarded = request({ port, method: incoming.method, path: incoming.url, headers })
    forwarded.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      response.flushHeaders()
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    response.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  await once(front.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://localhost:${(front.address() as AddressInfo).port}`,
    to(gateway) {
      port = Number(new URL(gateway).port)
    },
    close() {
      front.closeAllConnections()
      front.close()
    },
  }
}
