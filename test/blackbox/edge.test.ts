/**
 * Requests that the edge refuses, forwards or fetches, with canary servers that must never be
 * called.
 */
import { get as httpGet } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { fromAddress } from '../harness/address.ts'
import { BEHIND_ANSWERS, type Controlled, forget, recordsOf, setMode } from '../harness/control.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { mint, REMOTE_ISSUER } from '../harness/issuer.ts'
import { sendRaw } from '../harness/raw.ts'
import { postAs } from './oauth-clients.ts'
import { awayFromWindowEnd } from './window-end.ts'

const stack = inject('stack')
const [here] = stack.gateways
const { origin, rest, keySet } = stack
const ORDER_ID = '0190a4b0-5c1e-7f3a-8b2d-1c2d3e4f5a6b'

const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
let addresses = 0
/** Failures are counted by address. */
const newAddress = () => fromAddress(`10.78.0.${++addresses}`)
const countOf = async (server: Controlled) => (await recordsOf(server)).length
const everything = { claims: { roles: ['admin', 'operator'] } }

const call = (path: string, init: RequestInit) => fetch(here + path, init)

beforeEach(() => forget(origin))
afterEach(() => setMode(origin, 'serve'))

describe('methods [S49]', () => {
  const METHODS = 'TRACE TRACK PROPFIND QUERY PURGE LINK LOCK MKCOL OPTIONS SEARCH'.split(' ')
  const INVENTED = ['GETS', 'get', 'Get', 'DEBUG', 'X', 'GET,POST', '*']
  const PATHS = ['/orders', `/orders/${ORDER_ID}`, '/reports', '/public/ping', '/-/healthz']

  test.each([...METHODS, ...INVENTED])(
    '%s reaches no origin, for any caller [S49]',
    async (method) => {
      const token = await mint(stack.inlineKey, everything)
      for (const path of PATHS) {
        const lines = [`${method} ${path} HTTP/1.1`, 'Host: gateway.test', 'Connection: close']
        const known = [...lines, `Authorization: Bearer ${token}`]
        for (const head of [lines, known]) {
          const { status, text } = await sendRaw(here, `${head.join('\r\n')}\r\n\r\n`)
          expect([400, 405, 501], `${method} ${path}`).toContain(status)
          // TRACE would echo the credentials of a caller to a page that sends the request.
          expect(text).not.toContain(token)
        }
      }
      expect(await recordsOf(origin)).toEqual([])
    },
  )
})

describe('a foreign origin [S57]', () => {
  test('no form of a target, of Host or of a forwarding header leads to it [S57]', async () => {
    let canaryCalls = 0
    const canary = await startHttpServer((_, response) => {
      canaryCalls += 1
      response.end()
    })
    const evil = `127.0.0.1:${canary.port}`
    const token = await mint(stack.inlineKey)
    const forms: readonly (readonly [target: string, ...headers: string[]])[] = [
      [`http://${evil}/orders`],
      [`//${evil}/orders`],
      [`///${evil}/orders`],
      [`/\\${evil}/orders`],
      [`/@${evil}/orders`],
      [`@${evil}/orders`],
      [`http://gateway.test@${evil}/orders`],
      [`/orders/..//${evil}`],
      [`/%2f%2f${evil}/orders`],
      [`http:%2f%2f${evil}/orders`],
      [`/orders?url=http://${evil}/`],
      ['/orders', `X-Forwarded-Host: ${evil}`, `X-Forwarded-Server: ${evil}`],
      ['/orders', `X-Host: ${evil}`, `X-Original-Host: ${evil}`],
      ['/orders', `Forwarded: host=${evil};proto=http`],
      ['/orders', `X-Original-URL: http://${evil}/`, `X-Rewrite-URL: //${evil}/`],
    ]
    for (const [target, ...headers] of forms) {
      for (const host of ['gateway.test', evil]) {
        const lines = [`GET ${target} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...headers]
        const head = [...lines, `Authorization: Bearer ${token}`].join('\r\n')
        const { status } = await sendRaw(here, `${head}\r\n\r\n`)
        expect([200, 400, 404, 422], target).toContain(status)
      }
    }
    expect(canaryCalls).toBe(0)
    const configured = new URL(origin.url).host
    const requests = await recordsOf(origin)
    expect(requests.length).toBeGreaterThan(0)
    for (const { headers } of requests) expect(headers.host).toEqual([configured])
    await canary.close()
  })
})

describe('pages of other sites [S60]', () => {
  const PATHS = [
    '/orders',
    '/nowhere',
    '/public/ping',
    '/oauth/token',
    '/-/healthz',
    '/-/admin/clients',
    '/.well-known/jwks.json',
    '/.well-known/oauth-protected-resource',
  ]

  test.each(PATHS)('%s gives no access to a foreign origin, nor to "null" [S60]', async (path) => {
    for (const from of ['https://evil.test', 'null']) {
      const preflight = {
        origin: from,
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization',
      }
      const options = await call(path, { method: 'OPTIONS', headers: preflight })
      expect([404, 405]).toContain(options.status)
      const got = await call(path, { headers: { origin: from, cookie: 'sid=1' } })
      for (const { headers } of [options, got]) {
        const names = [...headers.keys()]
        expect(names.filter((name) => name.startsWith('access-control-'))).toEqual([])
        expect(names).not.toContain('x-powered-by')
        expect(headers.get('x-content-type-options')).toBe('nosniff')
      }
    }
  })
})

describe('answers [S61]', () => {
  test('a HEAD by one caller never answers a GET by another; each request reaches the origin [S61]', async () => {
    const [alice, bob] = [
      await mint(stack.inlineKey, { claims: { sub: 'alice' } }),
      await mint(stack.inlineKey, { claims: { sub: 'bob' } }),
    ]
    const path = `/orders?cursor=${crypto.randomUUID().slice(0, 8)}`
    const requests: [string, string][] = []
    for (const [method, token, sub] of [
      ['HEAD', alice, 'alice'],
      ['GET', bob, 'bob'],
      ['GET', alice, 'alice'],
      ['HEAD', bob, 'bob'],
    ] as const) {
      const response = await call(path, { method, headers: bearer(token) })
      expect(response.status).toBe(200)
      expect(response.headers.get('cache-control')).toContain('private')
      expect(response.headers.get('vary')?.toLowerCase()).toContain('authorization')
      expect((await response.text()) === '').toBe(method === 'HEAD')
      requests.push([method, sub])
    }
    const seen = (await recordsOf(origin)).map(({ method, headers }) => [
      method,
      headers['x-auth-subject']?.[0],
    ])
    expect(seen).toEqual(requests)
    expect((await call(path, {})).status).toBe(401)
    expect(await countOf(origin)).toBe(requests.length)
  })
})

describe('compressed bodies [S62]', () => {
  test('a body that would decompress to 50 MB is refused undecompressed, and never reaches the origin [S62]', async () => {
    const order = JSON.stringify({ item: 'x', quantity: 1, more: 'x'.repeat(50 * 1_048_576) })
    const body = gzipSync(order)
    expect(body.length).toBeLessThan(65_536)
    const token = await mint(stack.inlineKey, everything)
    for (const encoding of ['gzip', 'GZIP', 'gzip, gzip', 'identity, gzip', 'x-gzip']) {
      const headers = {
        ...bearer(token),
        'content-type': 'application/json',
        'content-encoding': encoding,
      }
      const response = await call('/orders', { method: 'POST', headers, body })
      expect(response.status, encoding).toBe(415)
      expect((await response.text()).length).toBeLessThan(2_000)
    }
    expect(await recordsOf(origin)).toEqual([])
  })
})

describe('a client that disconnects early [R22]', () => {
  test('has spent exactly one request of its budget for each request [R22]', async () => {
    await awayFromWindowEnd(5_000)
    const token = await mint(stack.inlineKey)
    await setMode(origin, 'hang')
    const LEAVING = 3
    for (let sent = 1; sent <= LEAVING; sent++) {
      const leaving = httpGet(`${here}/orders`, { headers: bearer(token) })
      const closed = new Promise((done) => leaving.once('close', done))
      leaving.on('error', () => {})
      await expect.poll(() => countOf(origin)).toBe(sent)
      leaving.destroy()
      await closed
    }
    await setMode(origin, 'serve')
    const response = await call('/orders', { headers: bearer(token) })
    const left = Number(/r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1])
    expect(left).toBe(100 - LEAVING - 1)
  })
})

describe('calls to dependencies [R29]', () => {
  const MAX_CALLS = 6
  /**
   * The calls to Redis of one request. Background writes are attributed by the address that they
   * name. Audit events are not counted: on Node the queue is a stream of the same Redis.
   */
  const callsToRedis = async (address: RegExp | undefined) =>
    (await recordsOf(rest)).filter(
      ({ body }) =>
        !body.includes('pc:audit:stream') &&
        (!BEHIND_ANSWERS.test(body) || address?.test(body) === true),
    ).length
  const json = { 'content-type': 'application/json' }

  test('no request makes more than six, and an ordinary request makes two [R29]', async () => {
    const admin = await mint(stack.inlineKey, everything)
    const remote = () => mint(stack.remoteKey, { claims: { iss: REMOTE_ISSUER, roles: ['admin'] } })
    const report = { method: 'POST', body: '{"from":"2026-01-01","to":"2026-01-31"}' }
    const grant = { grant_type: 'client_credentials' }
    const issued = await postAs(stack.operator, `${here}/oauth/token`, grant)
    const { access_token: own } = (await issued.json()) as { access_token: string }
    const requests: readonly (readonly [string, () => Promise<Response>])[] = [
      ['warm', () => fetch(`${here}/orders`, { headers: bearer(admin) })],
      [
        'two limits',
        () => fetch(`${here}/reports`, { ...report, headers: { ...bearer(admin), ...json } }),
      ],
      ['anonymous', () => fetch(`${here}/public/ping`)],
      [
        'keys of an issuer',
        async () => fetch(`${here}/orders`, { headers: bearer(await remote()) }),
      ],
      [
        'unknown reference',
        () =>
          fetch(`${here}/orders`, { headers: { ...bearer(crypto.randomUUID()), ...newAddress() } }),
      ],
      [
        'bad token',
        () => fetch(`${here}/orders`, { headers: { ...bearer('a.b.c'), ...newAddress() } }),
      ],
      ['unknown route', () => fetch(`${here}/nowhere`)],
      ['a token issued', () => postAs(stack.operator, `${here}/oauth/token`, grant)],
      ['introspection', () => postAs(stack.operator, `${here}/oauth/introspect`, { token: own })],
      ['operators', () => fetch(`${here}/-/admin/clients`, { headers: bearer(own) })],
      ['readiness', () => fetch(`${here}/-/readyz`)],
    ]
    const costs = new Map<string, number>()
    for (const [what, send] of requests) {
      // Sent once before, so that scripts and keys are loaded. The second request is counted.
      await (await send()).text()
      await Promise.all([forget(rest), forget(origin), forget(keySet)])
      const known = addresses
      await (await send()).text()
      const own = addresses > known ? new RegExp(`\\b10\\.78\\.0\\.${addresses}\\b`) : undefined
      const counts = [await callsToRedis(own), await countOf(origin), await countOf(keySet)]
      costs.set(
        what,
        counts.reduce((sum, count) => sum + count, 0),
      )
    }
    for (const [what, cost] of costs) expect(cost, what).toBeLessThanOrEqual(MAX_CALLS)
    // The failure is counted.
    expect(costs.get('bad token')).toBeLessThanOrEqual(2)
    expect(costs.get('unknown route')).toBe(0)
    // Three if Redis is called again after a broken connection.
    for (const what of ['warm', 'two limits', 'anonymous', 'keys of an issuer'])
      expect(costs.get(what), what).toBeLessThanOrEqual(3)
  })
})
