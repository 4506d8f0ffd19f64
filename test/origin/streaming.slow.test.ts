import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpOrigin } from './origin-server.ts'
import { RUNTIMES, startForwarding } from './runtimes.ts'
import { dial } from './wire.ts'
import type { Running } from './workerd.ts'

const MEGABYTE = 1_048_576
const LARGE_MEGABYTES = 192
/**
 * Maximum growth of resident memory while a large body passes: half of the body. The young generation
 * of Node alone may grow to 48 MiB.
 */
const MAX_GROWTH_BYTES = 96 * MEGABYTE

const PLAIN = Buffer.from('the same words over and over. '.repeat(2_000))
const GZIPPED = gzipSync(PLAIN)
const BROTLI = brotliCompressSync(PLAIN)

const sha256 = (...chunks: Buffer[]) => {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

describe.each(RUNTIMES)('on $name', (runtime) => {
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let gateway: Running

  /** The origin's `/events` calls it with a function that writes one event. */
  let onEvents: (write: (event: string) => void) => void = () => {}

  beforeAll(async () => {
    origin = await startHttpOrigin((incoming, response) => {
      const url = new URL(incoming.url ?? '/', 'http://origin')
      const encoded = (encoding: string, body: Buffer) => ({
        'Content-Encoding': encoding,
        'Content-Length': body.length,
        'Content-Type': 'text/plain',
      })
      switch (url.pathname) {
        case '/gzip':
          return response.writeHead(200, encoded('gzip', GZIPPED)).end(GZIPPED)
        case '/gzip-chunked':
          return response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(GZIPPED)
        case '/br':
          return response.writeHead(200, encoded('br', BROTLI)).end(BROTLI)
        case '/zstd':
          return response.writeHead(200, encoded('zstd', PLAIN)).end(PLAIN)
        case '/range':
          return response
            .writeHead(206, { 'Content-Range': 'bytes 0-9/100', 'Content-Length': 10 })
            .end(incoming.headers.range === 'bytes=0-9' ? PLAIN.subarray(0, 10) : 'wrong body')
        case '/nothing':
          return response.writeHead(204, { ETag: '"a"' }).end()
        case '/same':
          return response.writeHead(304, { ETag: '"a"' }).end()
        case '/hints':
          response.writeEarlyHints({ link: '</a.css>; rel=preload' })
          return response.end('after hints')
        case '/trailers':
          response.writeHead(200, { Trailer: 'X-Sum' }).write('with trailers')
          response.addTrailers({ 'X-Sum': '1' })
          return response.end()
        case '/events':
          response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
          return onEvents((event) => response.write(`data: ${event}\n\n`))
        case '/large':
          return sendLarge(Number(url.searchParams.get('megabytes')), response)
        case '/early':
          return response.writeHead(403).end('no need to read it')
        default:
          return digest(incoming).then(
            (sum) => response.end(sum),
            () => response.destroy(),
          )
      }
    })
    gateway = await startForwarding(runtime, `http://127.0.0.1:${origin.port}`)
  })
  afterAll(async () => {
    await Promise.all([gateway?.stop(), origin?.close()])
  })

  const block = Buffer.alloc(MEGABYTE, 'portcullis')
  const largeSum = (megabytes: number) => sha256(...Array.from({ length: megabytes }, () => block))

  async function sendLarge(megabytes: number, to: NodeJS.WritableStream): Promise<void> {
    for (let at = 0; at < megabytes; at++) if (!to.write(block)) await once(to, 'drain')
    to.end()
  }

  async function digest(from: AsyncIterable<Buffer>): Promise<string> {
    const hash = createHash('sha256')
    for await (const chunk of from) hash.update(chunk)
    return hash.digest('hex')
  }

  interface Sent {
    readonly method?: string
    readonly headers?: Record<string, string | number>
  }

  function startRequest(path: string, { method = 'GET', headers = {} }: Sent = {}) {
    const outgoing = request({ port: gateway.port, path, method, headers, agent: false })
    // The gateway may close the connection on a body that it refuses; only its response matters.
    return outgoing.on('error', () => {})
  }

  function answer(outgoing: ReturnType<typeof startRequest>): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      outgoing
        .once('response', resolve)
        .once('close', () => reject(new Error('closed without a response')))
    })
  }

  /** Resolves to whether the origin received the complete request, once the request is over. */
  async function arrivedWhole(seen: IncomingMessage): Promise<boolean> {
    if (!seen.closed) await new Promise((resolve) => seen.once('close', resolve))
    return seen.complete
  }

  async function upload(megabytes: number, headers: Sent['headers']): Promise<string> {
    const outgoing = startRequest('/digest', { method: 'POST', ...(headers && { headers }) })
    const answered = answer(outgoing)
    await sendLarge(megabytes, outgoing)
    return String(await bytesOf(await answered))
  }

  async function bytesOf(response: IncomingMessage): Promise<Buffer> {
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    return Buffer.concat(chunks)
  }

  async function get(path: string, sent?: Sent): Promise<[IncomingMessage, Buffer]> {
    const response = await answer(startRequest(path, sent).end())
    return [response, await bytesOf(response)]
  }

  /** Resident memory of the gateway's process in bytes. */
  function residentBytes(): number {
    const status = readFileSync(`/proc/${gateway.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024
  }

  describe('bodies pass unchanged', () => {
    test.each([
      ['/gzip', 'gzip', GZIPPED, String(GZIPPED.length)],
      ['/gzip-chunked', 'gzip', GZIPPED, undefined],
      ['/br', 'br', BROTLI, String(BROTLI.length)],
      ['/zstd', 'zstd', PLAIN, String(PLAIN.length)],
    ])(
      '%s is neither decompressed nor compressed again [R26]',
      async (path, encoding, body, length) => {
        for (const headers of [{ 'Accept-Encoding': 'gzip, br, zstd' }, {}] as Sent['headers'][]) {
          const [response, bytes] = await get(path, headers && { headers })
          expect(response.headers['content-encoding']).toBe(encoding)
          expect(response.headers['content-length']).toBe(length)
          expect(bytes.equals(body)).toBe(true)
        }
      },
    )

    test('HEAD returns the headers of GET without a body [R26]', async () => {
      const [response, bytes] = await get('/gzip', { method: 'HEAD' })
      expect(response.headers['content-length']).toBe(String(GZIPPED.length))
      expect(response.headers['content-encoding']).toBe('gzip')
      expect(bytes).toHaveLength(0)
    })

    test('ranges, 204 and 304 pass unchanged [R26]', async () => {
      const [partial, bytes] = await get('/range', { headers: { Range: 'bytes=0-9' } })
      expect([partial.statusCode, partial.headers['content-range']]).toEqual([206, 'bytes 0-9/100'])
      expect(bytes.equals(PLAIN.subarray(0, 10))).toBe(true)
      const [nothing] = await get('/nothing')
      expect([nothing.statusCode, nothing.headers.etag]).toEqual([204, '"a"'])
      const [same] = await get('/same', { headers: { 'If-None-Match': '"a"' } })
      expect([same.statusCode, same.headers.etag]).toEqual([304, '"a"'])
    })

    test('early hints and trailers do no harm [R26]', async () => {
      const [hinted, afterHints] = await get('/hints')
      expect([hinted.statusCode, String(afterHints)]).toEqual([200, 'after hints'])
      const [trailed, withTrailers] = await get('/trailers')
      expect([trailed.statusCode, String(withTrailers)]).toEqual([200, 'with trailers'])
      expect(trailed.headers.trailer).toBeUndefined()
    })

    test('an event arrives before the origin writes the next one [R26]', async () => {
      let write: (event: string) => void = () => {}
      onEvents = (writer) => {
        write = writer
        write('1')
      }
      const response = await answer(startRequest('/events').end())
      const events = response.setEncoding('utf8')[Symbol.asyncIterator]()
      for (const event of ['1', '2', '3']) {
        expect((await events.next()).value).toBe(`data: ${event}\n\n`)
        write(String(Number(event) + 1))
      }
      response.destroy()
    })

    test('a large download arrives complete, with bounded memory [R26]', async () => {
      await get('/large?megabytes=16')
      const before = residentBytes()
      const response = await answer(startRequest(`/large?megabytes=${LARGE_MEGABYTES}`).end())
      expect(await digest(response)).toBe(largeSum(LARGE_MEGABYTES))
      expect(residentBytes() - before).toBeLessThan(MAX_GROWTH_BYTES)
    })

    const length = String(LARGE_MEGABYTES * MEGABYTE)
    test.each<[string, Record<string, string>, string | undefined, number]>([
      ['with a length', { 'Content-Length': length }, length, 0],
      // Measured in JavaScript: what accumulates is garbage, and must level off.
      ['in chunks', { 'Transfer-Encoding': 'chunked' }, undefined, 2],
    ])(
      'a large upload %s arrives complete, with bounded memory [R26]',
      async (_, headers, declared, warm) => {
        for (let at = 0; at < warm; at++) await upload(LARGE_MEGABYTES, headers)
        const before = residentBytes()
        expect(await upload(LARGE_MEGABYTES, headers)).toBe(largeSum(LARGE_MEGABYTES))
        expect(residentBytes() - before).toBeLessThan(MAX_GROWTH_BYTES)
        expect(origin.requests.at(-1)?.headers['content-length']).toBe(declared)
      },
    )
  })

  describe('uploads', () => {
    const capped = (maxBodyBytes: number) => ({ 'Test-Route': JSON.stringify({ maxBodyBytes }) })

    test('Expect: 100-continue is answered, and the body arrives [R27]', async () => {
      const headers = { Expect: '100-continue', 'Content-Length': PLAIN.length }
      const outgoing = startRequest('/digest', { method: 'POST', headers })
      outgoing.flushHeaders()
      await once(outgoing, 'continue')
      const answered = answer(outgoing.end(PLAIN))
      expect(String(await bytesOf(await answered))).toBe(sha256(PLAIN))
      expect(origin.requests.at(-1)?.headers.expect).toBeUndefined()
    })

    test('a body with a declared length above the limit is refused before it is sent [R27, S62]', async () => {
      const reached = origin.requests.length
      const headers = { Expect: '100-continue', 'Content-Length': 11, ...capped(10) }
      const outgoing = startRequest('/digest', { method: 'POST', headers })
      outgoing.flushHeaders()
      const response = await answer(outgoing)
      expect(response.statusCode).toBe(413)
      expect(origin.requests).toHaveLength(reached)
      outgoing.destroy()
    })

    test('a body that exceeds the limit while it is read is 413, and no origin receives all of it [S62]', async () => {
      for (const sizes of [[11], [6, 6], [6, 6, 6, 6]]) {
        const reached = origin.requests.length
        const headers = { 'Transfer-Encoding': 'chunked', ...capped(10) }
        const outgoing = startRequest('/digest', { method: 'POST', headers })
        const answered = answer(outgoing)
        for (const size of sizes) {
          outgoing.write(Buffer.alloc(size))
          await new Promise(setImmediate)
        }
        outgoing.end()
        const response = await answered
        expect(response.statusCode, `${sizes}`).toBe(413)
        await bytesOf(response)
        for (const seen of origin.requests.slice(reached)) {
          expect(await arrivedWhole(seen)).toBe(false)
        }
      }
    })

    test('a stage that reads the body in the gateway gets the same 413 [S62]', async () => {
      const headers = { 'Transfer-Encoding': 'chunked', ...capped(10) }
      const outgoing = startRequest('/read-here', { method: 'POST', headers })
      const response = await answer(outgoing.end(Buffer.alloc(11)))
      expect(response.statusCode).toBe(413)
      await bytesOf(response)
    })

    test.each([
      ['with a length', 'Content-Length: 1000\r\n\r\nabcde'],
      ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n'],
    ])('an upload %s that breaks off never looks complete to the origin [R25]', async (_, rest) => {
      const reached = origin.requests.length
      const socket = await dial(
        gateway.port,
        `POST /digest HTTP/1.1\r\nHost: gateway.test\r\n${rest}`,
      )
      while (origin.requests.length === reached) await new Promise((done) => setTimeout(done, 5))
      socket.resetAndDestroy()
      const [seen] = origin.requests.slice(reached)
      expect(seen && (await arrivedWhole(seen))).toBe(false)
    })

    test('an early response of the origin reaches the client, and nothing hangs [R27]', async () => {
      const headers = { 'Content-Length': 4 * MEGABYTE }
      const outgoing = startRequest('/early', { method: 'POST', headers })
      outgoing.write(block.subarray(0, 16_384))
      const response = await answer(outgoing)
      expect(response.statusCode).toBe(403)
      expect(String(await bytesOf(response))).toBe('no need to read it')
      outgoing.destroy()
    })

    // The runtime reads 64 KB more and then closes the connection, which may lose the response on its
    // way: https://datatracker.ietf.org/doc/html/rfc9112#section-9.6
    test('a client that continues to send after an early response is disconnected [R27]', async () => {
      const headers = { 'Content-Length': 4 * MEGABYTE }
      const outgoing = startRequest('/early', { method: 'POST', headers })
      const heard: (number | undefined)[] = []
      outgoing.on('response', (response) => heard.push(response.resume().statusCode))
      const closed = new Promise((resolve) => outgoing.once('close', resolve))
      for (let at = 0; at < 4; at++) outgoing.write(block)
      outgoing.end()
      await closed
      expect([[], [403]]).toContainEqual(heard)
    })

    test.each(['GET', 'HEAD'])(
      'a %s with a body is refused, and nothing hangs [R27]',
      async (method) => {
        const reached = origin.requests.length
        const outgoing = startRequest('/digest', { method, headers: { 'Content-Length': 5 } })
        const response = await answer(outgoing.end('abcde'))
        expect(response.statusCode).toBe(400)
        await bytesOf(response)
        expect(origin.requests).toHaveLength(reached)
      },
    )

    test('the runtime reports no unread body [R29]', () => {
      expect(gateway.log()).not.toMatch(/stalled|deadlock|hung|unread/i)
    })
  })
})
