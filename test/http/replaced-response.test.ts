/** A refusal that comes after the response of the origin. */
import fc from 'fast-check'
import { Hono, type MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { describe, expect, test } from 'vitest'
import { Denied, Unavailable } from '../../src/errors.ts'
import { replaceBody } from '../../src/http/replaced-response.ts'
import { inOrder } from '../../src/middleware/in-order.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'

const onError = problemHandler()

const ERRORS: Record<string, () => Error> = {
  'an origin that failed': () => new Unavailable('origin', 'malformed'),
  'a denial': () => new Denied({ code: 'not_found' }),
  'a defect': () => new TypeError('a defect'),
  'an error of the app': () => new HTTPException(418, { res: new Response('', { status: 418 }) }),
}

const fields = fc.dictionary(
  fc.constantFrom(
    ...['content-length', 'content-encoding', 'content-range', 'content-disposition', 'etag'],
    ...['last-modified', 'trailer', 'link', 'x-of-origin', 'set-cookie', 'cache-control', 'vary'],
    ...['content-security-policy', 'content-digest', 'accept-ranges', 'www-authenticate'],
  ),
  fc.constantFrom('1', 'gzip', 'a=b'),
  { minKeys: 1 },
)

/** Calls the origin, and then fails. */
const failing = (create: () => Error): MiddlewareHandler =>
  async function failing(_, next) {
    await next()
    throw create()
  }

describe.each(Object.entries(ERRORS))('after a response, %s [S85]', (_, create) => {
  const compositions: Record<string, (app: Hono) => void> = {
    'by Hono': (app) => app.use(failing(create)),
    'by the gateway': (app) => app.use(inOrder([failing(create)], onError)),
  }
  test.each(Object.entries(compositions))(
    'composed %s, keeps no header of the response, whose body is cancelled',
    (_, compose) =>
      fc.assert(
        fc.asyncProperty(fields, async (headers) => {
          let cancelled = 0
          const app = new Hono().onError(onError)
          compose(app)
          app.get('/', () => {
            const body = new ReadableStream({
              cancel() {
                cancelled += 1
              },
            })
            return new Response(body, { headers })
          })
          const expected = await new Hono()
            .onError(onError)
            .get('/', () => {
              throw create()
            })
            .request('/')
          const response = await app.request('/')
          expect(response.status).toBe(expected.status)
          expect([...response.headers]).toEqual([...expected.headers])
          expect(await response.text()).toBe(await expected.text())
          expect(cancelled).toBe(1)
        }),
        { numRuns: 30 },
      ),
  )
})

test('a body that is replaced keeps the headers of the response, except those about its bytes [S85]', async () => {
  const kept = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'X-Kept': 'yes' }
  const app = new Hono()
    .use(async (c, next) => {
      await next()
      replaceBody(c, '[]')
    })
    .get('/', () => {
      const ofBytes = {
        'Content-Length': '200',
        ETag: '"1"',
        'Last-Modified': 'Thu, 01 Jan 1970 00:00:00 GMT',
        'Content-Digest': 'sha-256=:AAAA:',
        'Accept-Ranges': 'bytes',
        Trailer: 'Digest',
      }
      return new Response('x'.repeat(200), { status: 203, headers: { ...kept, ...ofBytes } })
    })
  const response = await app.request('/')
  expect(response.status).toBe(203)
  expect([...response.headers]).toEqual([...new Headers(kept)])
  expect(await response.text()).toBe('[]')
})
