import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { Denied } from '../../src/errors.ts'
import { queryParameters } from '../../src/http/query.ts'
import { validate } from '../../src/middleware/validate.ts'

/** Every character with a meaning in a query, and some without. */
const PIECES = ['a', 'é', '=', '&', '?', '#', '+', '%', '%41', '%zz', ';', ' ', '\t', '\ud800', '~']

describe('a query', () => {
  test('is parsed as the platform parses it, for any combination of characters', () => {
    for (const first of PIECES)
      for (const second of PIECES)
        for (const third of PIECES)
          for (const fourth of PIECES) {
            const query = first + second + third + fourth
            expect([...queryParameters(query)], query).toEqual([
              ...new URLSearchParams(`?${query}`),
            ])
          }
  })

  test('of printable ASCII needs no decoding: each character represents itself', () => {
    for (let code = 0x20; code < 0x80; code++) {
      const query = `a${String.fromCharCode(code)}b=c${String.fromCharCode(code)}`
      expect([...queryParameters(query)]).toEqual([...new URLSearchParams(`?${query}`)])
    }
  })
})

describe('a query parameter may be repeated', () => {
  const repeated = z.strictObject({
    tag: z.optional(z.array(z.string()).check(z.maxLength(2))),
    id: z._default(
      z.pipe(
        z.array(z.string()),
        z.transform((items) => items.map(Number)),
      ),
      [],
    ),
    either: z.optional(z.union([z.array(z.string()), z.array(z.coerce.number())])),
    text: z.optional(z.string()),
    mixed: z.optional(z.union([z.string(), z.array(z.string())])),
  })
  const app = new Hono()
    .get('/one', validate({ query: repeated }), (c) => c.json(c.req.valid('query' as never)))
    .get(
      '/both',
      validate({
        query: z.intersection(
          z.looseObject({ a: z.array(z.string()) }),
          z.looseObject({ b: z.string() }),
        ),
      }),
      (c) => c.text('ok'),
    )
    .onError((error, c) => c.json({}, error instanceof Denied ? 422 : 500))

  test.each([
    ['/one?tag=a&tag=b', 200],
    ['/one?tag=a', 200],
    ['/one?tag=a&tag=b&tag=c', 422],
    ['/one?text=a&text=b', 422],
    ['/one?tag=a&text=a&tag=b&text=b', 422],
    ['/one?mixed=a', 200],
    ['/one?mixed=a&mixed=b', 422],
    ['/one?either=1&either=2', 200],
    ['/one?__proto__=a&__proto__=b', 422],
    ['/both?a=1&a=2&b=1', 200],
    ['/both?a=1&b=1&b=2', 422],
  ])('only if its schema is a list: %s is %i', async (path, status) => {
    expect((await app.request(path)).status).toBe(status)
  })

  test('and its handler receives the list', async () => {
    const response = await app.request('/one?tag=a&id=1&id=2')
    expect(await response.json()).toEqual({ tag: ['a'], id: [1, 2] })
  })
})
