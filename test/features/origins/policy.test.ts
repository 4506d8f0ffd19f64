/** Origins and groups in a policy: what they mean, and which mistakes are reported. */
import { describe, expect, test } from 'vitest'
import { Misconfigured } from '../../../src/errors.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, group, type RouteDefinition } from '../../../src/index.ts'

const limit = '10/min'

function mistakesOf(
  routes: readonly object[],
  definitions: object | null = { orders: { url: 'https://orders.test' } },
): readonly string[] {
  try {
    definePolicy({
      roles: {},
      limits: { standard: limit },
      ...(definitions !== null && { origins: origins(definitions as never) }),
      routes: routes as RouteDefinition<'standard'>[],
    })
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return error.mistakes
  }
}

const route = { method: 'GET', path: '/a/:id', anonymous: true }

describe('a route', () => {
  test.each([
    [{ origin: 'ordres' }, 'origin: unknown origin "ordres"; did you mean "orders"?'],
    [{ origin: 'invoices' }, 'origin: unknown origin "invoices"'],
    [
      { host: 'API.example.com' },
      'host: must be a host in lower case without a port, such as api.example.com or *.example.com',
    ],
    [
      { host: 'a.*.com' },
      'host: must be a host in lower case without a port, such as api.example.com or *.example.com',
    ],
    [{ stripPrefix: '/b' }, 'stripPrefix: /b is not the beginning of the path'],
    [{ stripPrefix: '/' }, 'stripPrefix: must be the beginning of a path, such as /v1'],
    [
      { stripPrefix: '/a', rewrite: '/b' },
      'stripPrefix: cannot be combined with rewrite; remove one of them',
    ],
    [{ rewrite: '/b/:other' }, 'rewrite: the path has no parameter :other'],
    [{ rewrite: '/b/*' }, 'rewrite: * requires a path that ends with *'],
    [{ rewrite: '/b/../c' }, 'rewrite: must be a path such as /internal/orders/:id'],
    [{ rewrite: '/b/%2e%2e' }, 'rewrite: must be a path such as /internal/orders/:id'],
    [
      { path: '/a/:id?', rewrite: '/b/:id' },
      'rewrite: :id is optional in the path; use two routes',
    ],
  ])('with %o is a mistake', (fields, mistake) => {
    const [found] = mistakesOf([{ ...route, ...fields }])
    expect(found).toMatch(/^GET \S*\/a/)
    expect(found?.slice(found.indexOf(': ') + 2)).toBe(mistake)
  })

  test.each([
    'X-Auth-Subject',
    'x-request-id',
    'traceparent',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Host',
    'Authorization',
    'X-Forwarded-For',
  ])('cannot change the request header %s', (name) => {
    for (const requestHeaders of [{ set: { [name]: 'x' } }, { remove: [name] }])
      expect(mistakesOf([{ ...route, requestHeaders }])).toEqual([
        expect.stringMatching(/requestHeaders.*cannot be changed: only the gateway may set it/),
      ])
  })

  test.each([
    'X-Auth-Subject',
    'X-Request-Id',
    'Access-Control-Allow-Origin',
    'Content-Length',
    'Set-Cookie',
    'Vary',
    'RateLimit',
    'Connection',
  ])('cannot change the response header %s', (name) => {
    const responseHeaders = { set: { [name]: 'x' } }
    expect(mistakesOf([{ ...route, responseHeaders }])).toHaveLength(1)
  })

  test.each(['a\r\nX-Auth-Subject: root', 'a\nb', '', ' a', 'ü'])(
    'cannot set a header to %j',
    (value) => {
      const requestHeaders = { set: { 'X-Region': value } }
      expect(mistakesOf([{ ...route, requestHeaders }])).toEqual([
        'GET /a/:id: requestHeaders.set.X-Region: must be visible ASCII in one line'.replace(
          '.X-Region',
          '["X-Region"]',
        ),
      ])
    },
  )

  test.each(['origin', 'host', 'stripPrefix', 'rewrite', 'requestHeaders', 'audience'])(
    'with %s needs origins(), and the mistake names the import',
    (field) => {
      expect(mistakesOf([{ ...route, [field]: 'x' }], null)).toEqual([
        `GET ${field === 'host' ? 'x' : ''}/a/:id: ${field}: requires the field origins of the policy; ` +
          "import { origins } from 'portcullis/origins'",
      ])
    },
  )

  test('hides a later one of the same host only', () => {
    const on = (host: string) => ({ ...route, host })
    expect(mistakesOf([on('a.test'), on('b.test')])).toEqual([])
    expect(mistakesOf([on('a.test'), on('a.test')])).toHaveLength(1)
    expect(mistakesOf([route, on('a.test')])).toHaveLength(1)
    expect(mistakesOf([on('a.test'), on('*.test')])).toEqual([])
    expect(mistakesOf([on('*.test'), on('a.b.test')])).toEqual([])
    expect(mistakesOf([on('*.test'), on('a.test')])).toEqual([
      'GET a.test/a/:id: is unreachable, because *.test/a/:id above it matches the same requests',
    ])
  })
})

describe('an origin', () => {
  const url = 'https://a.test'
  test.each([
    [{ a: {} }, 'origins.a: requires url, variable or binding'],
    [{ A: { url } }, 'origins.A: must be a name of lower-case letters, digits and hyphens: orders'],
    [{ a: { url: 'https://u:p@a.test' } }, 'origins.a.url: must not contain credentials'],
    [{ a: { url: `${url}/?x` } }, 'origins.a.url: must have no query or fragment'],
    [{ a: { variable: 'ORDERS' } }, 'origins.a.variable: must be a name such as ORIGIN_URL_ORDERS'],
    [
      { a: { url, canary: { origin: 'b', percent: 1 } }, c: { url } },
      'origins.a.canary.origin: unknown origin "b"; did you mean "a"?',
    ],
    [
      { a: { url, canary: { origin: 'a', percent: 1 } } },
      'origins.a.canary.origin: a has a canary itself',
    ],
    [
      { a: { url, canary: { origin: 'b', percent: 0.001 } }, b: { url } },
      'origins.a.canary.percent: must be from 0 to 100, in steps of 0.01',
    ],
  ])('%o is a mistake', (definitions, mistake) => {
    expect(mistakesOf([route], definitions)).toContain(mistake)
  })

  test('has a deadline for its routes, which a route can replace', () => {
    const { routes } = definePolicy({
      roles: {},
      limits: {},
      origins: origins({ slow: { url, timeoutMs: 60_000 } }),
      routes: [
        { method: 'GET', path: '/a', anonymous: true, origin: 'slow' },
        { method: 'GET', path: '/b', anonymous: true, origin: 'slow', originTimeoutMs: 5 },
        { method: 'GET', path: '/c', anonymous: true },
      ],
    })
    expect(routes.map(({ originTimeoutMs }) => originTimeoutMs)).toEqual([60_000, 5, 15_000])
  })

  test('that does not exist does not compile', () => {
    const typed = () =>
      definePolicy({
        roles: {},
        limits: {},
        origins: origins({ orders: { url } }),
        // @ts-expect-error: the name is misspelled
        routes: [{ method: 'GET', path: '/a', anonymous: true, origin: 'ordres' }],
      })
    expect(typed).toThrow('did you mean "orders"?')
  })
})

describe('a group', () => {
  test('sets fields, adds its prefix and its limits, and its routes can replace fields', () => {
    const routes = group(
      { host: 'a.test', prefix: '/v1', origin: 'orders', limits: ['all'], permission: 'a:read' },
      [
        { method: 'GET', path: '/' },
        { method: 'GET', path: '/x', host: 'b.test', limits: ['own', 'all'] },
        ...group({ prefix: '/open', anonymous: true, limits: ['open'] }, [
          { method: 'GET', path: '/:id' },
          { method: 'DELETE', path: '/:id', permission: 'a:delete' },
        ]),
      ],
    )
    const shared = { host: 'a.test', origin: 'orders' }
    expect(routes).toEqual([
      { ...shared, method: 'GET', path: '/v1', limits: ['all'], permission: 'a:read' },
      {
        ...shared,
        method: 'GET',
        path: '/v1/x',
        host: 'b.test',
        limits: ['all', 'own'],
        permission: 'a:read',
      },
      { ...shared, method: 'GET', path: '/v1/open/:id', limits: ['all', 'open'], anonymous: true },
      {
        ...shared,
        method: 'DELETE',
        path: '/v1/open/:id',
        limits: ['all', 'open'],
        permission: 'a:delete',
      },
    ])
  })
})
