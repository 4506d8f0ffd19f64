import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { Denied } from '../../src/errors.ts'
import { ambiguity, pathOf, targetOf } from '../../src/http/path.ts'
import { listReadings } from '../../src/http/path-reading.ts'
import { canonicalPath } from '../../src/middleware/canonical-path.ts'
import { refuseLookAlikes } from '../../src/middleware/refuse-look-alikes.ts'

const MAX_PATH_LENGTH = 8_192

const REFUSED: readonly (readonly [path: string, check: string])[] = [
  ['', 'not_absolute'],
  ['*', 'not_absolute'],
  ['admin/x', 'not_absolute'],
  ['//admin/x', 'empty_segment'],
  ['/admin//x', 'empty_segment'],
  ['/orders//', 'empty_segment'],
  ['/\\admin/x', 'character'],
  ['/a\\..\\admin', 'character'],
  ['/admin%2fx', 'encoded_delimiter'],
  ['/admin%2Fx', 'encoded_delimiter'],
  ['/a/..%2fadmin/x', 'encoded_delimiter'],
  ['/%5cadmin', 'encoded_delimiter'],
  ['/%5Cadmin', 'encoded_delimiter'],
  ['/admin%3fx', 'encoded_delimiter'],
  ['/admin%23x', 'encoded_delimiter'],
  ['/admin%3bx', 'encoded_delimiter'],
  ['/%2561dmin/x', 'double_encoding'],
  ['/a%252e%252e/x', 'double_encoding'],
  ['/a%25u002fb', 'double_encoding'],
  ['/a/../admin', 'dot_segment'],
  ['/a/./admin', 'dot_segment'],
  ['/admin/..', 'dot_segment'],
  ['/admin/.', 'dot_segment'],
  ['/..', 'dot_segment'],
  ['/a/.../admin', 'dot_segment'],
  ['/admin/%20', 'blank_segment'],
  ['/admin/+', 'blank_segment'],
  ['/a/+/admin', 'blank_segment'],
  ['/a/%20/admin', 'blank_segment'],
  ['/a/..%20/admin', 'blank_segment'],
  ['/a/%20../admin', 'blank_segment'],
  ['/a/.+/admin', 'blank_segment'],
  ['/a/%c2%a0/admin', 'blank_segment'],
  ['/a/%e2%80%8b/admin', 'blank_segment'],
  ['/a/..%c2%ad/admin', 'blank_segment'],
  ['/(S(x))/admin', 'parameter'],
  ['/ad/(s(x))min', 'parameter'],
  ['/(A(x)F(y))/admin', 'parameter'],
  ['/%28S%28x%29%29/admin', 'parameter'],
  ['/a/%2e%2e/admin', 'encoded_unreserved'],
  ['/a/.%2E/admin', 'encoded_unreserved'],
  ['/a/%2e', 'encoded_unreserved'],
  ['/%61dmin/x', 'encoded_unreserved'],
  ['/%41DMIN', 'encoded_unreserved'],
  ['/a%7Eb', 'encoded_unreserved'],
  ['/a%30', 'encoded_unreserved'],
  ['/a%2D', 'encoded_unreserved'],
  ['/a%5f', 'encoded_unreserved'],
  ['/admin;/x', 'parameter'],
  ['/admin;jsessionid=1', 'parameter'],
  ['/public/..;/admin', 'parameter'],
  ['/admin%00/x', 'control'],
  ['/admin%0d%0aX', 'control'],
  ['/admin%09', 'control'],
  ['/admin%7f', 'control'],
  ['/admin%c2%85', 'control'],
  ['/admin%e2%80%a8', 'control'],
  ['/admin\u0000', 'character'],
  ['/admin\tx', 'character'],
  ['/adm\u00efn', 'character'],
  ['/a b', 'character'],
  ['/a<b', 'character'],
  ['/%u002fadmin', 'percent_encoding'],
  ['/%zz', 'percent_encoding'],
  ['/a%', 'percent_encoding'],
  ['/a%2', 'percent_encoding'],
  ['/a%%32f', 'percent_encoding'],
  ['/%c0%af', 'utf8'],
  ['/%c0%ae%c0%ae/x', 'utf8'],
  ['/%e0%80%af', 'utf8'],
  ['/%ed%a0%80', 'utf8'],
  ['/%ff', 'utf8'],
  ['/%c3', 'utf8'],
  ['/a%ef%bc%8fb', 'look_alike'],
  ['/files/..%e2%88%95..%e2%88%95admin', 'look_alike'],
  ['/a%e2%81%84b', 'look_alike'],
  ['/a%ef%bc%bcb', 'look_alike'],
  ['/%ef%bc%8e%ef%bc%8e/b', 'look_alike'],
  ['/%e2%80%a5/b', 'look_alike'],
  ['/a%e2%84%80b', 'look_alike'],
  ['/%ef%bc%852fadmin', 'look_alike'],
  [`/${'a'.repeat(MAX_PATH_LENGTH)}`, 'too_long'],
]

const PASSED: readonly string[] = [
  '/',
  '/orders',
  '/orders/',
  '/orders/0190f8a0-7c3a-7c7e-9d2f-000000000000',
  '/.well-known/jwks.json',
  '/-/healthz',
  '/file.tar.gz',
  '/v1..2/~user_name',
  '/ADMIN/x',
  "/a!$&'()*+,=:@b",
  '/a|b[c]',
  '/hello%20world',
  '/+1',
  '/a+b/c++',
  '/(draft)',
  '/Orders(17)',
  '/user%40example.com',
  '/caf%C3%A9',
  '/%e6%97%a5%e6%9c%ac',
  '/100%25',
  '/50%25-off',
  `/${'a'.repeat(MAX_PATH_LENGTH - 1)}`,
]

describe('ambiguity', () => {
  test.each(REFUSED)('%j is refused as %s [S50]', (path, check) => {
    expect(ambiguity(path)).toBe(check)
  })

  test.each(PASSED)('%j has a single reading [S50]', (path) => {
    expect(ambiguity(path)).toBeUndefined()
  })

  test('an encoded unreserved character is refused, for each of them [S50]', () => {
    const unreserved = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'
    for (const character of unreserved) {
      const hex = character.charCodeAt(0).toString(16)
      expect(ambiguity(`/a%${hex}b`), character).toBe('encoded_unreserved')
      expect(ambiguity(`/a%${hex.toUpperCase()}b`), character).toBe('encoded_unreserved')
    }
  })

  test('an accepted path stays the same after decoding it once and twice [S50]', () => {
    for (let byte = 0; byte < 0x80; byte++) {
      const path = `/a%${byte.toString(16).padStart(2, '0')}b`
      if (ambiguity(path) !== undefined) continue
      const segments = decodeURIComponent(path).split(/[/\\;?#]/)
      expect(segments, path).toHaveLength(2)
    }
  })
})

describe('the path of a URL', () => {
  test.each([
    ['http://h/a/b?c#d', '/a/b', '/a/b?c'],
    ['https://h.test:8787/a', '/a', '/a'],
    ['http://[::1]:80/a?b=/../c', '/a', '/a?b=/../c'],
    ['http://h/a#b?c', '/a', '/a'],
    ['http://h/a?b?c', '/a', '/a?b?c'],
    ['http://h/a/../b', '/a/../b', '/a/../b'],
    ['http://h//evil.test/x', '//evil.test/x', '//evil.test/x'],
  ])('%s has the path %s [S51]', (url, path, target) => {
    expect(pathOf(url)).toBe(path)
    expect(targetOf(url)).toBe(target)
  })

  test.each(['http://h*', 'http://h?c/admin', 'http://u@h#/admin', 'http:///x', 'http://a, b/x'])(
    'a Host that changes the path of %s leaves no path [S57]',
    (url) => {
      expect(pathOf(url)).toBe('')
      expect(targetOf(url)).toBe('')
    },
  )
})

describe('canonicalPath', () => {
  function guarded() {
    const reached: string[] = []
    const app = new Hono()
    app.onError((error, c) =>
      error instanceof Denied ? c.json(error.denial, 400) : c.text('defect', 500),
    )
    app.use(canonicalPath())
    app.all('*', (c) => {
      reached.push(c.req.path)
      return c.text('reached')
    })
    return { app, reached }
  }

  test.each(['//admin/x', '/admin%2fx', '/%2561dmin/x', '/admin;/x', '/admin%00/x', '/%zz'])(
    '%s is refused with ambiguous_path and reaches no handler [S50]',
    async (path) => {
      const { app, reached } = guarded()
      const response = await app.fetch(new Request(`http://gateway.test${path}`))
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'ambiguous_path' })
      expect(reached).toEqual([])
    },
  )

  test.each(['a/b?c', 'gateway.test/public', 'a\\b', 'a?b', 'a#b', 'a@b'])(
    'the Host %s changes the path: it is refused and reaches no handler [S57]',
    async (host) => {
      const { app, reached } = guarded()
      const response = await app.request('http://gateway.test/public', { headers: { host } })
      expect(response.status).toBe(400)
      expect(await response.json()).toEqual({ code: 'ambiguous_path', check: 'host' })
      expect(reached).toEqual([])
    },
  )

  test.each([undefined, '', 'gateway.test', 'gateway.test:8787', '[::1]:80'])(
    'the Host %s changes nothing',
    async (host) => {
      const { app, reached } = guarded()
      const headers = host === undefined ? {} : { host }
      expect((await app.request('http://gateway.test/public', { headers })).status).toBe(200)
      expect(reached).toEqual(['/public'])
    },
  )

  test('nothing in a query makes a path ambiguous [S51]', async () => {
    const { app, reached } = guarded()
    const query = '?x=/../admin&y=%2f%00%zz//;'
    const response = await app.fetch(new Request(`http://gateway.test/public${query}`))
    expect(response.status).toBe(200)
    expect(reached).toEqual(['/public'])
  })
})

describe('refuseLookAlikes', () => {
  test('the reason names the route that the origin could match [S67]', async () => {
    const reached: string[] = []
    const app = new Hono()
    app.onError((error, c) => c.json(error instanceof Denied ? error.denial : {}, 400))
    const readings = listReadings('/api/*', '/api/admin', 'loose', false)
    const lookAlikes = [{ path: '/api/admin', readings }]
    app.get('/api/*', refuseLookAlikes({ lookAlikes }), (c) => {
      reached.push(c.req.path)
      return c.text('reached')
    })
    const refused = await app.request('http://gateway.test/api/Admin?x=/api/orders')
    expect(await refused.json()).toEqual({
      code: 'ambiguous_path',
      check: 'reads_as /api/admin',
    })
    expect(reached).toEqual([])
    const query = await app.request('http://gateway.test/api/orders?x=/api/Admin')
    expect(query.status).toBe(200)
  })
})
