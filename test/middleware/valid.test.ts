/** The input behind `validate`, and the limited body, as a handler reads them from `c.req`. */
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { limitBody } from '../../src/middleware/limit-body.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { validate } from '../../src/middleware/validate.ts'

const post = (body: BodyInit, headers: Record<string, string> = {}) => {
  const all = { 'content-type': 'application/json', ...headers }
  return { method: 'POST', headers: all, body, duplex: 'half' }
}

/** Without a length, as a chunked body. */
const chunked = (text: string) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of new TextEncoder().encode(text)) controller.enqueue(Uint8Array.of(byte))
      controller.close()
    },
  })

describe('behind validate,', () => {
  const schemas = {
    params: z.strictObject({ id: z.coerce.number() }),
    query: z.strictObject({ limit: z.coerce.number().default(20) }),
    headers: z.object({ 'x-device': z.string().toUpperCase() }),
    body: z.strictObject({ at: z.iso.date().transform((text) => new Date(text).getTime()) }),
  }

  test('c.req.valid returns the output of each schema', async () => {
    const app = new Hono()
    app.post('/notes/:id', limitBody({ maxBytes: 100 }), validate(schemas), (c) => {
      const { req } = c as unknown as { req: { valid(target: string): unknown } }
      return c.json(['param', 'query', 'header', 'json'].map((target) => req.valid(target)))
    })
    const response = await app.request('/notes/7', post('{"at":"2026-11-23"}', { 'x-device': 'a' }))
    expect(await response.json()).toEqual([
      { id: 7 },
      { limit: 20 },
      { 'x-device': 'A' },
      { at: Date.UTC(2026, 10, 23) },
    ])
  })

  test.each([
    [true, [422, 422, 422, 200]],
    [false, [200, 200, 200, 200]],
  ])(
    'a query that origins read in different ways is refused if it is forwarded (%j)',
    async (forwards, expected) => {
      const app = new Hono()
      app.onError(problemHandler())
      const query = z.looseObject({ a: z.string().optional() })
      app.get('/', validate({ query, forwards }), (c) => c.text('reached'))
      const queries = ['a=1;b=2', 'a=100%', 'a=%ff', 'a=1%3Bb=2']
      const responses = await Promise.all(queries.map((text) => app.request(`/?${text}`)))
      expect(responses.map(({ status }) => status)).toEqual(expected)
      const message = 'Must be percent-encoded UTF-8, with %3B for a semicolon'
      const said = await Promise.all(responses.map((response) => response.text()))
      expect(said.map((text) => /Must [^"]+/.exec(text)?.[0])).toEqual(
        forwards ? [message, message, message, undefined] : Array(4).fill(undefined),
      )
    },
  )

  const readers = {
    json: async (body: Body) => JSON.stringify(await body.json()),
    text: (body: Body) => body.text(),
    arrayBuffer: async (body: Body) => new TextDecoder().decode(await body.arrayBuffer()),
    blob: async (body: Body) => (await body.blob()).text(),
  }
  test.each(Object.entries(readers))('c.req.%s() reads the body again', async (_, read) => {
    const app = new Hono()
    const body = z.strictObject({ text: z.string() })
    app.post('/', limitBody({ maxBytes: 100 }), validate({ body }), async (c) =>
      c.text(`${await read(c.req as unknown as Body)} ${await c.req.text()}`),
    )
    const text = '{"text":"ünïcödé"}'
    for (const sent of [text, chunked(text)])
      expect(await (await app.request('/', post(sent))).text()).toBe(`${text} ${text}`)
  })

  test('a schema may drop unknown keys if the handler gets its output', async () => {
    const body = z.object({ text: z.string() })
    expect(() => validate({ body })).toThrow(TypeError)
    const app = new Hono()
    app.post('/', limitBody({ maxBytes: 100 }), validate({ body, forwards: false }), (c) =>
      c.json(c.req.valid('json' as never)),
    )
    const response = await app.request('/', post('{"text":"a","admin":true}'))
    expect(await response.json()).toEqual({ text: 'a' })
  })
})

describe('behind limitBody with ofRequest,', () => {
  const app = new Hono()
  app.onError(problemHandler())
  app.use(limitBody({ maxBytes: 10, ofRequest: true }))
  app.post('/text', async (c) => c.text(await c.req.text()))
  app.post('/raw', async (c) => c.text(await new Response(c.req.raw.body).text()))
  app.post('/ignored', (c) => c.text('ignored'))
  app.post('/caught', async (c) => c.text(await c.req.text().catch(() => 'caught')))
  app.get('/text', async (c) => c.text(`${await c.req.text()}none`))

  test.each(['/text', '/raw'])('%s reads a body within the limit', async (path) => {
    for (const sent of ['0123456789', chunked('0123456789')])
      expect(await (await app.request(path, post(sent))).text()).toBe('0123456789')
  })

  test.each(['/text', '/raw', '/caught'])('%s is 413 for a longer body', async (path) => {
    expect((await app.request(path, post(chunked('01234567890')))).status).toBe(413)
  })

  test('a body that the handler ignores is no error', async () => {
    expect(await (await app.request('/ignored', post(chunked('0123')))).text()).toBe('ignored')
    expect(await (await app.request('/text')).text()).toBe('none')
  })
})
