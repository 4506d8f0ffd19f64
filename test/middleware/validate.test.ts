import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import {
  newOrder,
  orderListQuery,
  orderParams,
  reportPeriod,
} from '../../examples/orders/schemas.ts'
import type { BodyVariables } from '../../src/middleware/context.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { validate } from '../../src/middleware/validate.ts'

/** An app with handlers that report what reached them: nothing, unless they ran. */
function guarded() {
  const reached: string[] = []
  const app = new Hono<{ Variables: BodyVariables }>()
  app.onError(problemHandler())
  app.use(async (c, next) => {
    c.set('portcullis.body', c.req.raw.body)
    await next()
  })
  app.get('/orders', validate({ query: orderListQuery }), (c) => {
    reached.push('list')
    return c.text('')
  })
  app.get('/orders/:id', validate({ params: orderParams }), (c) => {
    reached.push('read')
    return c.text('')
  })
  for (const [path, body] of [
    ['/orders', newOrder],
    ['/reports', reportPeriod],
  ] as const) {
    app.post(path, validate({ body }), async (c) => {
      reached.push(await new Response(c.get('portcullis.body')).text())
      return c.text('')
    })
  }
  return { app, reached }
}

async function post(path: string, body: BodyInit, headers: Record<string, string> = {}) {
  const { app, reached } = guarded()
  const response = await app.request(path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  })
  return { response, reached }
}

const order = { item: 'nails', quantity: 3 }

describe('validate', () => {
  test('forwards exactly the bytes that were checked', async () => {
    const text = ' {"quantity" : 3.0, "item":"n\\u0061ils","position":[1,-2.50,1e2]}\n'
    const { response, reached } = await post('/orders', text)
    expect(response.status).toBe(200)
    expect(reached).toEqual([text])
  })

  test.each([
    ['an unknown key', { ...order, admin: true }],
    ['an array as string', { ...order, item: ['nails'] }],
    ['a number as string', { ...order, quantity: '3' }],
    ['a quantity of zero', { ...order, quantity: 0 }],
    ['a quantity beyond the maximum', { ...order, quantity: 1001 }],
    ['a fractional quantity', { ...order, quantity: 1.5 }],
    ['an empty item', { ...order, item: '' }],
    ['an item that is too long', { ...order, item: 'x'.repeat(101) }],
    ['a missing item', { quantity: 1 }],
    ['a position of two numbers', { ...order, position: [1, 2] }],
    ['a position of four numbers', { ...order, position: [1, 2, 3, 4] }],
    ['a position out of range', { ...order, position: [0, 0, 100_000.1] }],
    ['an array', [order]],
    ['a string', 'order'],
    ['null', null],
  ])('%s is 422 with a finding, and reaches no handler [S63]', async (_, body) => {
    const { response, reached } = await post('/orders', JSON.stringify(body))
    expect(response.status).toBe(422)
    expect(await response.json()).toMatchObject({
      code: 'invalid_input',
      errors: [{ in: 'body' }],
    })
    expect(reached).toEqual([])
  })

  test.each([
    ['__proto__', '{"item":"a","quantity":1,"__proto__":{"admin":true}}', 400],
    ['constructor', '{"item":"a","quantity":1,"constructor":{"prototype":{"admin":true}}}', 422],
  ])('the key %s is refused [S63]', async (_, text, status) => {
    const { response, reached } = await post('/orders', text)
    expect(response.status).toBe(status)
    expect(reached).toEqual([])
  })

  test.each([
    ['duplicated names', '{"item":"a","item":"b","quantity":1}'],
    ['duplicated names in another spelling', '{"item":"a","\\u0069tem":"b","quantity":1}'],
    ['deep nesting', `{"item":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['an empty body', ''],
    ['a truncated body', '{"item":'],
    ['a byte order mark', '\ufeff{"item":"a","quantity":1}'],
    ['trailing text', '{"item":"a","quantity":1} {}'],
    ['bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0x22])],
    ['UTF-16', new Uint8Array([0x7b, 0x00, 0x7d, 0x00])],
  ])('%s is 400 and reaches no handler', async (_, text) => {
    const { response, reached } = await post('/orders', text)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'malformed_request' })
    expect(reached).toEqual([])
  })

  test('a million keys are refused with a bounded response [S63]', async () => {
    const keys = Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":1`)
    const { response, reached } = await post('/orders', `{${keys.join(',')}}`)
    expect(response.status).toBe(422)
    expect((await response.text()).length).toBeLessThan(4_096)
    expect(reached).toEqual([])
  })

  test.each([
    'text/plain',
    'application/json, text/plain',
    'application/json; charset=utf-16',
    'application/json; charset="utf-8',
    'application/jsonp',
    'application/+json',
    'text/x+json',
    'application/vnd.api+json; charset=utf-16',
    'application/x-www-form-urlencoded',
  ])('%s is 415', async (type) => {
    const headers = { 'content-type': type }
    const { response, reached } = await post('/orders', JSON.stringify(order), headers)
    expect(response.status).toBe(415)
    expect(response.headers.get('accept')).toBe('application/json')
    expect(reached).toEqual([])
  })

  test('a compressed body is 415, and the response names the accepted codings', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const { response, reached } = await post('/orders', JSON.stringify(order), headers)
    expect(response.status).toBe(415)
    expect(response.headers.get('accept-encoding')).toBe('identity')
    expect(reached).toEqual([])
  })

  test.each([
    'application/json',
    'Application/JSON; charset=UTF-8',
    'application/json;charset="utf-8"',
    'application/merge-patch+json',
    'application/vnd.api+json; ext="https://example.test/ext"',
  ])('%s is JSON', async (type) => {
    const { response } = await post('/orders', JSON.stringify(order), { 'content-type': type })
    expect(response.status).toBe(200)
  })

  test('a period must not end before it begins', async () => {
    const good = await post('/reports', '{"from":"2026-01-01","to":"2026-01-01"}')
    expect(good.response.status).toBe(200)
    const bad = await post('/reports', '{"from":"2026-01-02","to":"2026-01-01"}')
    expect(bad.response.status).toBe(422)
    expect(await bad.response.json()).toMatchObject({ errors: [{ in: 'body', path: '/to' }] })
    expect(bad.reached).toEqual([])
  })

  test.each([
    ['', 200],
    ['?limit=1', 200],
    ['?limit=100&cursor=abc', 200],
    ['?limit=0', 422],
    ['?limit=101', 422],
    ['?limit=1e1', 422],
    ['?limit=0x10', 422],
    ['?limit=%201', 422],
    ['?limit=', 422],
    ['?limit=1&limit=2', 422],
    ['?limit=1&%6cimit=2', 422],
    ['?limit[]=1', 422],
    ['?unknown=1', 422],
    ['?__proto__=1', 422],
    ['?constructor=1', 422],
    // The origin would read a parameter `?limit`, which no schema has.
    ['??limit=5', 422],
    ['?limit=5&?limit=7', 422],
  ])('the query %j is %i [S63]', async (query, status) => {
    const { app, reached } = guarded()
    const response = await app.request(`/orders${query}`)
    expect(response.status).toBe(status)
    expect(reached).toEqual(status === 200 ? ['list'] : [])
  })

  test.each([
    ['/orders/0190a4b0-5c1e-7f3a-8b2d-1c2d3e4f5a6b', 200],
    ['/orders/1', 422],
    ['/orders/0190a4b0-5c1e-7f3a-8b2d-1c2d3e4f5a6b%0a', 422],
  ])('the path %s is %i', async (path, status) => {
    const { app, reached } = guarded()
    const response = await app.request(path)
    expect(response.status).toBe(status)
    expect(reached).toEqual(status === 200 ? ['read'] : [])
  })

  test('a schema that drops unknown keys, at any depth, is refused when the app is built', () => {
    const inner = z.strictObject({ list: z.array(z.object({ a: z.string() }).optional()) })
    expect(() => validate({ body: inner })).toThrow(TypeError)
    expect(() => validate({ body: z.object({}) })).toThrow(/strictObject/)
    expect(() => validate({ body: z.looseObject({ a: z.string() }) })).not.toThrow()
  })

  test.each([
    ['preprocess', z.preprocess((value) => value, z.object({ a: z.string() }))],
    ['a pipe', z.unknown().pipe(z.object({ a: z.string() }))],
  ])('a schema that drops unknown keys behind %s is refused as well', (_, body) => {
    expect(() => validate({ body })).toThrow(/strictObject/)
  })

  // zod skips this name: a value of any kind passed, and an origin in JavaScript may change a prototype.
  test.each([
    ['a record', z.record(z.string(), z.number())],
    ['an open object', z.looseObject({ a: z.number() })],
    ['an object with other members of one kind', z.object({ a: z.number() }).catchall(z.number())],
  ])('the name __proto__ is refused in %s, in each spelling and at each depth', async (_, part) => {
    const reached: string[] = []
    const app = new Hono<{ Variables: BodyVariables }>()
    app.onError(problemHandler())
    app.use((c, next) => {
      c.set('portcullis.body', c.req.raw.body)
      return next()
    })
    app.all('/read', validate({ query: part }), (c) => c.text(String(reached.push('query'))))
    app.all('/', validate({ body: z.strictObject({ part }) }), (c) =>
      c.text(String(reached.push('body'))),
    )
    const post = (body: string) =>
      app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    for (const name of ['__proto__', '\\u005f_proto__'])
      for (const text of [`"a":1,"${name}":{"admin":true}`, `"${name}":"x","a":1`]) {
        const response = await post(`{"part":{${text}}}`)
        expect(response.status, text).toBe(400)
        expect(await response.json()).toMatchObject({ code: 'malformed_request' })
      }
    const query = await app.request('/read?%5f_proto__=1')
    expect(query.status).toBe(422)
    expect(await query.json()).toMatchObject({
      errors: expect.arrayContaining([
        { in: 'query', path: '/__proto__', message: 'Unknown keys are not allowed' },
      ]),
    })
    expect(reached).toEqual([])
    expect((await post('{"part":{"a":1,"constructor":2}}')).status).toBe(200)
  })

  test('a body that breaks off is attributed to the client, and reaches no handler [R22]', async () => {
    const body = new ReadableStream({
      pull(controller) {
        controller.error(new Error('the client has closed the connection'))
      },
    })
    const { app, reached } = guarded()
    const response = await app.request('/orders', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
      duplex: 'half',
    } as RequestInit)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'malformed_request' })
    expect(reached).toEqual([])
  })
})
