import { Hono } from 'hono'
import { etag as etagOfHono } from 'hono/etag'
import { describe, expect, test } from 'vitest'
import { etag } from '../../src/http/etag.ts'

const HEADERS = { 'Cache-Control': 'public', Vary: 'Origin', 'X-Document': '1' }

/** An app with a document, one with a tag of its own, and an error. */
function appWith(middleware: typeof etag) {
  return new Hono()
    .get('/document', middleware(), (c) => c.json({ a: 1 }, 200, HEADERS))
    .get('/tagged', middleware(), (c) => c.text('a', 200, { ...HEADERS, ETag: 'W/"own"' }))
    .get('/error', middleware(), (c) => c.text('a', 400, HEADERS))
}

/** Returns what a client receives, without the value of a tag that is a digest. */
async function received(middleware: typeof etag, path: string, ifNoneMatch?: string) {
  const app = appWith(middleware)
  const tag = (await app.request(path)).headers.get('ETag') ?? ''
  const headers: HeadersInit =
    ifNoneMatch === undefined ? {} : { 'If-None-Match': ifNoneMatch.replace('TAG', tag) }
  const response = await app.request(path, { headers })
  const sent = Object.fromEntries(response.headers)
  return {
    status: response.status,
    text: await response.text(),
    headers: { ...sent, ...(sent.etag === tag && { etag: 'the tag' }) },
  }
}

describe.each(['/document', '/tagged', '/error'])('%s', (path) => {
  test.each([
    [undefined, 200],
    ['"another"', 200],
    ['TAG', 304],
    ['W/TAG', 304],
    ['"another", TAG', 304],
    ['*', 304],
    ['own', 200],
    ['', 200],
  ])('If-None-Match %s has the response of hono/etag', async (ifNoneMatch, status) => {
    const own = await received(etag, path, ifNoneMatch)
    expect(own).toEqual(await received(etagOfHono, path, ifNoneMatch))
    expect(own.status).toBe(path === '/error' ? 400 : status)
  })
})

test('another document has another tag', async () => {
  const app = new Hono().get('/:text', etag(), (c) => c.text(c.req.param('text')))
  const tags = ['a', 'b'].map(async (text) => (await app.request(`/${text}`)).headers.get('ETag'))
  expect(new Set(await Promise.all(tags)).size).toBe(2)
})
