/** Several origins behind one gateway: where each request goes, and what each origin receives. */
import { decodeJwt } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, group } from '../../../src/index.ts'
import { type RecordingOrigin, startOrigin, startWorld, type World } from './world.ts'

let world: World
let orders: RecordingOrigin
let customers: RecordingOrigin
let fallback: RecordingOrigin
let all: readonly RecordingOrigin[]

beforeAll(async () => {
  world = await startWorld()
  orders = await startOrigin('orders')
  customers = await startOrigin('customers')
  fallback = await startOrigin('fallback', (request, response) => {
    if (request.url === '/moved') response.writeHead(302, { Location: orders.url }).end()
    else response.writeHead(200, { Server: 'x', 'Cache-Control': 'public', 'X-Old': '1' }).end()
  })
  all = [orders, customers, fallback]
})
afterAll(async () => {
  await Promise.all(all.map((origin) => origin.close()))
  await world.close()
})
afterEach(() => void vi.restoreAllMocks())
beforeEach(() => {
  for (const { received } of all) received.length = 0
})

const reached = () => all.map(({ received }) => received.map(({ line }) => line))

function policy() {
  return definePolicy({
    roles: { reader: ['orders:read', 'customers:read'] },
    limits: { standard: '1000/min' },
    abuse: { bans: false, authenticationFailures: false },
    origins: origins({
      orders: { variable: 'ORIGIN_URL_ORDERS', retries: {} },
      customers: { url: `${customers.url}/base`, audience: 'urn:customers', timeoutMs: 20_000 },
    }),
    routes: [
      ...group({ host: 'api.example.com', prefix: '/v1', limits: ['standard'] }, [
        ...group({ origin: 'orders', permission: 'orders:read', stripPrefix: '/v1' }, [
          { method: 'GET', path: '/orders' },
          { method: 'GET', path: '/orders/:id' },
          { method: 'GET', path: '/orders/:id/lines/:line', rewrite: '/lines/:line/of/:id' },
          { method: 'GET', path: '/files/*', rewrite: '/store/*' },
        ]),
        {
          method: 'GET',
          path: '/customers/:id',
          origin: 'customers',
          permission: 'customers:read',
          audience: 'https://orders.example.com',
        },
      ]),
      {
        method: 'GET',
        path: '/orders',
        host: '*.example.com',
        origin: 'customers',
        anonymous: true,
      },
      {
        method: 'GET',
        path: '/ping',
        anonymous: true,
        requestHeaders: { remove: ['X-Client'], set: { 'X-Region': 'eu' } },
        responseHeaders: { remove: ['X-Old'], set: { 'X-Frame-Options': 'DENY' } },
      },
      { method: 'GET', path: '/moved', anonymous: true },
    ],
  })
}

const gateway = () =>
  world.gateway(policy(), { ORIGIN_URL: fallback.url, ORIGIN_URL_ORDERS: orders.url })

describe('routing', () => {
  test('a request reaches the origin of its route only, below its base path', async () => {
    const send = gateway()
    const token = await world.token('alice', { aud: 'https://orders.example.com' })
    expect(await (await send('api.example.com/v1/orders?a=1&b=%2F', { token })).text()).toBe(
      'orders',
    )
    expect((await send('api.example.com/v1/customers/7', { token })).status).toBe(200)
    expect((await send('api.example.com/ping')).status).toBe(200)
    expect(reached()).toEqual([
      ['GET /orders?a=1&b=%2F'],
      ['GET /base/v1/customers/7'],
      ['GET /ping'],
    ])
  })

  test.each([
    ['API.EXAMPLE.COM:8443/v1/orders', 401],
    ['api.example.com./v1/orders', 401],
    ['api.example.com/orders', 200],
    ['shop.example.com/orders', 200],
    ['shop.example.com/v1/orders', 404],
    ['a.shop.example.com/orders', 404],
    ['example.com/orders', 404],
    ['api.example.com.evil.test/orders', 404],
    ['192.0.2.7/orders', 404],
    ['192.0.2.7/ping', 200],
    ['other.test/v1/orders', 404],
  ])('%s is %i: an exact host, one wildcard label, or any host', async (target, status) => {
    const send = gateway()
    expect((await send(target)).status).toBe(status)
    if (status >= 400) expect(reached()).toEqual([[], [], []])
  })

  test('405 names the methods of this host only', async () => {
    const send = gateway()
    const refused = await send('shop.example.com/orders', { method: 'DELETE' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect((await send('other.test/orders', { method: 'DELETE' })).status).toBe(404)
  })

  test('look-alikes are those of the same host and origin', async () => {
    const send = world.gateway(
      definePolicy({
        roles: { reader: ['admin:read'] },
        limits: {},
        origins: origins({ a: { url: orders.url }, b: { url: customers.url } }),
        routes: [
          { method: 'GET', path: '/admin', host: 'a.test', origin: 'a', permission: 'admin:read' },
          { method: 'GET', path: '/:page', host: 'a.test', origin: 'a', anonymous: true },
          { method: 'GET', path: '/:page', host: 'b.test', origin: 'b', anonymous: true },
        ],
      }),
    )
    expect((await send('a.test/ADMIN')).status).toBe(400)
    expect((await send('b.test/ADMIN')).status).toBe(200)
    expect(reached()).toEqual([[], ['GET /ADMIN'], []])
  })

  test("the gateway's own paths exist on every host", async () => {
    const send = gateway()
    for (const host of ['api.example.com', 'shop.example.com', 'other.test'])
      expect((await send(`${host}/-/healthz`)).status).toBe(200)
  })

  test('a redirect of an origin is returned, not followed', async () => {
    const response = await gateway()('other.test/moved')
    expect([response.status, response.headers.get('location')]).toEqual([302, orders.url])
    expect(orders.received).toEqual([])
  })
})

describe('rewriting', () => {
  test.each([
    ['/v1/orders/7/lines/2?x=%2e%2e%2f', '/lines/2/of/7?x=%2e%2e%2f'],
    ['/v1/orders/a%20b', '/orders/a%20b'],
    ['/v1/files', '/store'],
    ['/v1/files/a/b%20c/', '/store/a/b%20c/'],
  ])('%s becomes %s', async (target, line) => {
    const token = await world.token('alice')
    const response = await gateway()(`api.example.com${target}`, { token })
    expect(response.status).toBe(200)
    expect(orders.received.map(({ line: text }) => text)).toEqual([`GET ${line}`])
  })

  test.each([
    '/v1/orders/..%2fadmin/lines/2',
    '/v1/orders/..%5cadmin',
    '/v1/files/a%2f..%2f..%2fb',
    '/v1/files//etc',
    '/v1/orders/%252e%252e',
  ])('%s cannot leave its place: it is refused before the origin', async (target) => {
    const token = await world.token('alice')
    expect((await gateway()(`api.example.com${target}`, { token })).status).toBe(400)
    expect(reached()).toEqual([[], [], []])
  })
})

describe('headers', () => {
  test('a route sets and removes headers in both directions', async () => {
    const headers = { 'X-Client': 'a', 'X-Other': 'b', 'X-Region': 'us' }
    const response = await gateway()('other.test/ping', { headers })
    const [received] = fallback.received
    expect(received?.headers).toMatchObject({ 'x-other': 'b', 'x-region': 'eu' })
    expect(received?.headers['x-client']).toBeUndefined()
    expect(response.headers.get('x-frame-options')).toBe('DENY')
    expect(response.headers.get('x-old')).toBeNull()
    expect(response.headers.get('x-request-id')).not.toBeNull()
  })
})

describe('identity', () => {
  test('each origin receives assertions with its own audience', async () => {
    const send = gateway()
    const token = await world.token('alice', {
      aud: ['https://gateway.test', 'https://orders.example.com'],
    })
    await send('api.example.com/v1/orders', { token })
    await send('api.example.com/v1/customers/7', { token })
    const audiences = [orders, customers].map(
      ({ received }) => decodeJwt(String(received[0]?.headers['x-auth-assertion'])).aud,
    )
    expect(audiences).toEqual([orders.url, 'urn:customers'])
  })

  test('a token without the audience of the route is 401 invalid_token, and not forwarded', async () => {
    const token = await world.token('alice')
    const response = await gateway()('api.example.com/v1/customers/7', { token })
    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ code: 'invalid_token' })
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
    expect(customers.received).toEqual([])
  })
})

describe('the environment', () => {
  test('reports missing and wrong variables of origins with all other mistakes', () => {
    const wrong = () =>
      world.gateway(
        definePolicy({
          roles: {},
          limits: {},
          origins: origins({
            a: { variable: 'ORIGIN_URL_A' },
            b: { variable: 'ORIGIN_URL_B' },
            c: { binding: 'C' },
          }),
          routes: [{ method: 'GET', path: '/a', anonymous: true, origin: 'a' }],
        }),
        { ORIGIN_URL_B: 'ftp://b', METRICS_ACCESS: 'nobody' },
      )
    expect(wrong).toThrow('ORIGIN_URL_A: is missing; it is the URL of the origin a')
    expect(wrong).toThrow('ORIGIN_URL_B: must be an http or https URL')
    expect(wrong).toThrow('C: is missing; bind the Worker of the origin c')
    expect(wrong).toThrow('METRICS_ACCESS')
    expect(wrong).not.toThrow('ORIGIN_URL: is missing')
  })

  test('ORIGIN_URL is required if a route names no origin', () => {
    expect(() => world.gateway(policy(), { ORIGIN_URL_ORDERS: orders.url })).toThrow(
      'ORIGIN_URL: is missing',
    )
  })

  test('an origin may be a service binding, and its variable replaces it', async () => {
    const bound: string[] = []
    const ORDERS = {
      async fetch(url: string) {
        bound.push(url)
        return new Response('bound')
      },
    }
    const withBinding = definePolicy({
      roles: {},
      limits: {},
      origins: origins({ orders: { binding: 'ORDERS', variable: 'ORIGIN_URL_ORDERS' } }),
      routes: [{ method: 'GET', path: '/a', anonymous: true, origin: 'orders' }],
    })
    await world.gateway(withBinding, { ORDERS })('x.test/a')
    expect(bound).toEqual(['https://origin/a'])
    await world.gateway(withBinding, { ORDERS, ORIGIN_URL_ORDERS: orders.url })('x.test/a')
    expect(reached()).toEqual([['GET /a'], [], []])
  })

  test('a required audience that no issuer has is logged when the gateway starts', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const withAudience = (audience: string, env = {}) =>
      world.gateway(
        definePolicy({
          roles: { reader: ['a:read'] },
          limits: {},
          origins: origins({ a: { url: orders.url } }),
          routes: group({ permission: 'a:read', origin: 'a', audience }, [
            { method: 'GET', path: '/a' },
          ]),
        }),
        env,
      )
    withAudience('https://orders.example.com')
    withAudience('https://gateway.test', { PUBLIC_URL: 'HTTPS://gateway.test/' })
    expect(warn).not.toHaveBeenCalled()
    withAudience('https://order.example.com')
    expect(warn.mock.calls).toEqual([
      [
        'GET /a: no entry of ISSUERS has the audience https://order.example.com, which the route requires',
      ],
    ])
  })

  test('two origins with the same default audience are a mistake', () => {
    const shared = () =>
      world.gateway(
        definePolicy({
          roles: {},
          limits: {},
          origins: origins({ a: { url: 'https://x.test/a' }, b: { url: 'https://x.test/b' } }),
          routes: [{ method: 'GET', path: '/a', anonymous: true, origin: 'a' }],
        }),
      )
    expect(shared).toThrow(
      'origins.b.audience: must be set, because the origin a has the same audience https://x.test',
    )
  })
})

describe('a circuit breaker', () => {
  test.each([
    ['origin', [502, 'open']],
    ['route', [502, 'closed']],
  ] as const)('per %s', async (breaker, other) => {
    const send = world.gateway(
      definePolicy({
        roles: {},
        limits: {},
        abuse: { bans: false },
        origins: origins({
          down: { url: 'http://127.0.0.1:1', breaker },
          up: { url: orders.url },
        }),
        routes: [
          { method: 'GET', path: '/a', anonymous: true, origin: 'down' },
          { method: 'GET', path: '/b', anonymous: true, origin: 'down' },
          { method: 'GET', path: '/c', anonymous: true, origin: 'up' },
        ],
      }),
    )
    for (let sent = 0; sent < 5; sent++) expect((await send('x.test/a')).status).toBe(502)
    // Only a refusal by a breaker says when to try again.
    const stateOf = ({ status, headers }: Response) => [
      status,
      headers.has('retry-after') ? 'open' : 'closed',
    ]
    expect(stateOf(await send('x.test/a'))).toEqual([502, 'open'])
    expect(stateOf(await send('x.test/b'))).toEqual(other)
    expect((await send('x.test/c')).status).toBe(200)
  })
})

describe('a canary', () => {
  test('gets its share of the callers, always the same ones, with its own assertions', async () => {
    const send = world.gateway(
      definePolicy({
        roles: { reader: ['orders:read'] },
        limits: {},
        origins: origins({
          orders: { url: orders.url, canary: { origin: 'next', percent: 50 } },
          next: { url: customers.url },
        }),
        routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', origin: 'orders' }],
      }),
    )
    for (let caller = 0; caller < 20; caller++) {
      const token = await world.token(`caller-${caller}`)
      const texts = [await send('x.test/orders', { token }), await send('x.test/orders', { token })]
      const [one, another] = await Promise.all(texts.map((response) => response.text()))
      expect(one).toBe(another)
    }
    expect(orders.received.length).toBeGreaterThan(0)
    expect(customers.received.length).toBeGreaterThan(0)
    for (const { received, url } of [orders, customers])
      for (const { headers } of received)
        expect(decodeJwt(String(headers['x-auth-assertion'])).aud).toBe(url)
  })
})
