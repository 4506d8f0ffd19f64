import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { Denied, Unavailable } from '../../src/errors.ts'
import type { BodyVariables } from '../../src/middleware/context.ts'
import { bodyOf } from '../../src/middleware/context.ts'
import { limitBody } from '../../src/middleware/limit-body.ts'

const DRAIN_BYTES = 16_777_216

/** A body that records how far it was read, and whether it was read to its end or cancelled. */
function source(chunks: readonly number[]) {
  const seen = { pulled: 0, released: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const size = chunks[seen.pulled++]
        if (size === undefined) {
          seen.released = true
          controller.close()
        } else controller.enqueue(new Uint8Array(size))
      },
      cancel() {
        seen.released = true
      },
    },
    { highWaterMark: 0 },
  )
  return { seen, stream }
}

function post(
  stream: ReadableStream | string,
  headers: Record<string, string> = {},
  method = 'POST',
) {
  const init = { method, headers, body: stream, duplex: 'half' }
  return new Request('http://gateway.test/', init)
}

type Reader = (body: ReadableStream | Uint8Array | null) => Promise<string>

const readAll: Reader = async (body) => {
  const bytes = await new Response(body as BodyInit | null).arrayBuffer()
  return `${body === null ? 'null' : bytes.byteLength}`
}

function app(maxBytes: number, read: Reader = readAll) {
  const reached = { count: 0 }
  const hono = new Hono<{ Variables: BodyVariables }>()
  hono.onError((error, c) => {
    if (error instanceof Denied)
      return c.json(error.denial, error.denial.code === 'payload_too_large' ? 413 : 400)
    return c.text(error.name, error instanceof Unavailable ? 502 : 500)
  })
  hono.use(limitBody({ maxBytes }))
  hono.all('*', async (c) => {
    reached.count++
    const answer = await read(bodyOf(c))
    return c.text(answer, 200, { 'Set-Cookie': 'from=the-handler' })
  })
  return { hono, reached }
}

describe('limitBody', () => {
  test('a declared length over the maximum is refused, and nothing of the body is forwarded [S62]', async () => {
    const { hono, reached } = app(10)
    const { seen, stream } = source([11])
    const response = await hono.fetch(post(stream, { 'Content-Length': '11' }))
    expect(response.status).toBe(413)
    expect(await response.json()).toEqual({ code: 'payload_too_large', maxBytes: 10 })
    expect(reached.count).toBe(0)
    expect(seen.released).toBe(true)
  })

  test('a body without a length is cut off at the first byte over the maximum [S62]', async () => {
    const { hono } = app(10)
    const { seen, stream } = source([6, 6, 6, 6, 6])
    const response = await hono.fetch(post(stream))
    expect(response.status).toBe(413)
    expect(seen.released).toBe(true)
  })

  test('a false length does not help [S62]', async () => {
    const { hono } = app(10)
    const { stream } = source([6, 6])
    expect((await hono.fetch(post(stream, { 'Content-Length': '5' }))).status).toBe(413)
  })

  test('a length beside Transfer-Encoding is ignored [S62]', async () => {
    const { hono } = app(10)
    const { stream } = source([6, 6])
    const headers = { 'Content-Length': '5', 'Transfer-Encoding': 'chunked' }
    expect((await hono.fetch(post(stream, headers))).status).toBe(413)
    for (const length of ['0', '11', 'abc']) {
      const request = post(source([6]).stream, { ...headers, 'Content-Length': length })
      const response = await hono.fetch(request)
      expect([response.status, await response.text()], length).toEqual([200, '6'])
    }
  })

  test('a body of exactly the maximum is forwarded [S62]', async () => {
    for (const headers of [{}, { 'Content-Length': '10' }] as Record<string, string>[]) {
      const { stream } = source([5, 5])
      const response = await app(10).hono.fetch(post(stream, headers))
      expect([response.status, await response.text()]).toEqual([200, '10'])
    }
  })

  test.each(['-1', '+5', '1e1', '5, 5', ' ', 'abc', '9999999999999999', '0x5'])(
    'the length %j is malformed [S62]',
    async (length) => {
      const { hono, reached } = app(10)
      const { seen, stream } = source([5])
      const response = await hono.fetch(post(stream, { 'Content-Length': length }))
      expect(response.status).toBe(400)
      expect(await response.json()).toEqual({ code: 'malformed_request', check: 'content_length' })
      expect(reached.count).toBe(0)
      expect(seen.released).toBe(true)
    },
  )

  test('a maximum of zero refuses every body and accepts none [S62]', async () => {
    expect((await app(0).hono.fetch(post('x', { 'Content-Length': '1' }))).status).toBe(413)
    expect((await app(0).hono.fetch(post(source([1]).stream))).status).toBe(413)
    const empty = await app(0).hono.fetch(post(source([]).stream))
    expect([empty.status, await empty.text()]).toEqual([200, '0'])
    const declared = await app(0).hono.fetch(post('', { 'Content-Length': '0' }))
    expect([declared.status, await declared.text()]).toEqual([200, 'null'])
    const none = await app(0).hono.fetch(new Request('http://gateway.test/', { method: 'POST' }))
    expect([none.status, await none.text()]).toEqual([200, 'null'])
  })

  test('a reader that rethrows the refusal gets one response [S62]', async () => {
    const answered: Error[] = []
    const hono = new Hono<{ Variables: BodyVariables }>()
    hono.onError((error, c) => {
      answered.push(error)
      return c.text(error.name, error instanceof Denied ? 413 : 500)
    })
    hono.post('/', limitBody({ maxBytes: 10 }), async (c) => c.text(await readAll(bodyOf(c))))
    expect((await hono.fetch(post(source([11]).stream))).status).toBe(413)
    expect(answered).toHaveLength(1)
  })

  test('the response is 413 even if the reader throws its own error [S62]', async () => {
    const { hono } = app(10, async (body) => {
      await readAll(body).catch(() => {
        throw new Unavailable('origin', 'unreachable')
      })
      return 'read'
    })
    expect((await hono.fetch(post(source([11]).stream))).status).toBe(413)
  })

  test('the response is 413 even if the reader swallows the error [S62]', async () => {
    const { hono } = app(10, async (body) => readAll(body).catch(() => 'fine'))
    const response = await hono.fetch(post(source([11]).stream))
    expect(response.status).toBe(413)
    expect(response.headers.get('Set-Cookie')).toBeNull()
  })

  test('the response is 413 even if the reader swallows the error and sends no body [S62]', async () => {
    const hono = new Hono<{ Variables: BodyVariables }>()
    hono.onError((error, c) => c.text(error.name, error instanceof Denied ? 413 : 500))
    hono.post('/', limitBody({ maxBytes: 10 }), async (c) => {
      await readAll(bodyOf(c)).catch(() => undefined)
      return c.body(null, 204)
    })
    expect((await hono.fetch(post(source([11]).stream))).status).toBe(413)
  })

  test('a byte stream is forwarded to its end [R26]', async () => {
    let chunks = 3
    const stream = new ReadableStream({
      type: 'bytes',
      pull(controller) {
        if (chunks-- > 0) return controller.enqueue(new Uint8Array(2))
        controller.close()
        controller.byobRequest?.respond(0)
      },
    })
    expect(await (await app(10).hono.fetch(post(stream))).text()).toBe('6')
  })

  test('a response may stream the body back after the handler has returned [R26]', async () => {
    const hono = new Hono<{ Variables: BodyVariables }>()
    hono.use(limitBody({ maxBytes: 10 }))
    hono.post('/', (c) => c.body(bodyOf(c) as ReadableStream))
    const response = await hono.fetch(post(source([2, 3]).stream))
    expect((await response.arrayBuffer()).byteLength).toBe(5)
  })

  test('nothing of a body is read before the reader requests it [R26]', async () => {
    const { seen, stream } = source([1, 2])
    let pulled: number | undefined
    const { hono } = app(10, async (body) => {
      await new Promise((resolve) => setImmediate(resolve))
      pulled = seen.pulled
      return readAll(body)
    })
    expect(await (await hono.fetch(post(stream))).text()).toBe('3')
    expect(pulled).toBe(0)
  })

  test('a body that its reader cancels is released [R29]', async () => {
    const { seen, stream } = source([1, 2, 3])
    const { hono } = app(10, async (body) => {
      await (body as ReadableStream).cancel()
      return `${seen.released}`
    })
    expect(await (await hono.fetch(post(stream))).text()).toBe('true')
  })

  test('chunks are forwarded one at a time, as the reader requests them [R26]', async () => {
    const { seen, stream } = source([1, 2, 3])
    const sizes: unknown[] = []
    const { hono } = app(10, async (body) => {
      const reader = (body as ReadableStream<Uint8Array>).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return 'read'
        sizes.push([seen.pulled, value.byteLength])
      }
    })
    await hono.fetch(post(stream))
    expect(sizes).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
  })

  test('a body that a later guard refuses unread is released [R29]', async () => {
    const { seen, stream } = source([1, 2, 3])
    const { hono } = app(10, async () => {
      throw new Denied({ code: 'missing_token' })
    })
    expect((await hono.fetch(post(stream))).status).toBe(400)
    expect(seen.released).toBe(true)
  })

  test.each([{}, { 'Content-Length': '99999999' }] as Record<string, string>[])(
    'only a bounded part of a refused body is read (%o) [R27]',
    async (headers) => {
      const chunkBytes = 100_000
      const { seen, stream } = source(Array.from({ length: 10_000 }, () => chunkBytes))
      expect((await app(10).hono.fetch(post(stream, headers))).status).toBe(413)
      expect(seen.released).toBe(true)
      expect(seen.pulled * chunkBytes).toBeLessThanOrEqual(DRAIN_BYTES + 3 * chunkBytes)
    },
  )

  test.each(['GET', 'HEAD'])(
    'a %s with a body is refused, and without one the request has no body [R27]',
    async (method) => {
      const { hono, reached } = app(10)
      const { stream } = source([1])
      const request = new Proxy(post(stream), {
        get: (target, name) => (name === 'method' ? method : Reflect.get(target, name, target)),
      })
      const response = await hono.fetch(request)
      expect(response.status).toBe(400)
      // The response to a HEAD has no content.
      const problem = { code: 'malformed_request', check: 'unexpected_body' }
      expect(await response.text()).toBe(method === 'HEAD' ? '' : JSON.stringify(problem))
      expect(reached.count).toBe(0)
      expect(await (await hono.request('/')).text()).toBe('null')
    },
  )

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'a maximum of %d is refused [R31]',
    (cap) => {
      expect(() => limitBody({ maxBytes: cap })).toThrow(
        new RangeError(`limitBody: maxBytes must be an integer of at least 0, not ${cap}`),
      )
    },
  )
})
