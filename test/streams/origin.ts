/** An origin whose responses stay open, and that counts them. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { WebSocketServer } from 'ws'
import { KEEP_ALIVE_MS } from '../harness/http-server.ts'

const PAUSE_MS = 50
/** Bytes of each part of a download. */
const PART = 'x'.repeat(1_000)
/** A short body, and the time between its halves: longer than any header waits for its body. */
export const HALF = 'half of it'
const HALF_PAUSE_MS = 200
/** Parts of a download that finishes within seconds, and of one that outlives a test. */
const PARTS = 50
const MANY_PARTS = 1_000

export type StreamOrigin = Awaited<ReturnType<typeof startStreamOrigin>>

export async function startStreamOrigin() {
  const open = new Set<ServerResponse>()
  const waiting = new Set<ServerResponse>()
  const executed: string[] = []
  const webSockets = new WebSocketServer({ noServer: true })

  /** Writes a part again and again, and ends the response after `count` parts. */
  function repeat(
    response: ServerResponse,
    part: string,
    count = Number.POSITIVE_INFINITY,
    pauseMs = PAUSE_MS,
  ): void {
    let written = 0
    const timer = setInterval(() => {
      response.write(part)
      written += 1
      if (written >= count) response.end()
    }, pauseMs)
    response.on('close', () => clearInterval(timer))
    response.flushHeaders()
  }

  const server = createServer((request, response) => {
    request.resume()
    executed.push(`${request.method} ${request.url}`)
    open.add(response)
    response.on('close', () => open.delete(response))
    const { url = '' } = request
    const parts = url.startsWith('/finish/') ? PARTS : MANY_PARTS
    const whole = { 'Content-Length': PART.length * parts }
    if (url.endsWith('/late')) {
      waiting.add(response)
      response.on('close', () => waiting.delete(response))
    } else if (url.endsWith('/whole')) repeat(response.writeHead(200, whole), PART, parts)
    else if (url.endsWith('/trickle'))
      repeat(response.writeHead(200, { 'Content-Length': 3_000 }), 'x', 3_000)
    else if (url.endsWith('/chunks')) repeat(response.writeHead(200), PART, parts)
    else if (url.endsWith('/stalled')) response.writeHead(200, whole).write(PART)
    else if (url.endsWith('/short')) response.end('short')
    else if (url.endsWith('/halves')) {
      // Nothing, or one half, has arrived when the gateway begins its response.
      const halves = url.startsWith('/finish/') ? [HALF, HALF] : [HALF]
      response.writeHead(200, { 'Content-Length': 2 * HALF.length }).flushHeaders()
      if (halves.length === 1) response.write(HALF)
      setTimeout(() => {
        for (const half of halves) response.write(half)
        response.end()
      }, HALF_PAUSE_MS)
    } else if (url.endsWith('/broken')) {
      response.writeHead(200, { 'Content-Length': 2 * HALF.length }).write(HALF)
      setTimeout(() => response.destroy(), HALF_PAUSE_MS)
    } else if (url.endsWith('/zipped')) {
      const zipped = gzipSync(HALF)
      response
        .writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': zipped.length })
        .end(zipped)
    } else {
      // Of many streams, the measured process must not be busy with their events.
      const pauseMs = url.startsWith('/two/') ? 2_000 : PAUSE_MS
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      repeat(response, ': tick\n\n', Number.POSITIVE_INFINITY, pauseMs)
    }
  })
  server.on('upgrade', (request, socket, head) => {
    webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('error', () => {})
      webSocket.on('message', (data, isBinary) => webSocket.send(data, { binary: isBinary }))
    })
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    /** Responses that have not ended. */
    open,
    /** Method and path of every request. */
    executed,
    /** Returns the number of requests that have no response yet. */
    waiting: () => waiting.size,
    /** Answers the requests that have no response yet. */
    answerLate() {
      for (const response of waiting) response.end('late')
    },
    webSockets: webSockets.clients,
    close() {
      for (const client of webSockets.clients) client.terminate()
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
