/** The examples of the migration guides: what they decide, and what the origin receives. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import app from '../../examples/migration/hono-jwk.ts'
import kong from '../../examples/migration/kong.ts'
import oauth2Proxy from '../../examples/migration/oauth2-proxy.ts'
import { policyTest, policyTester } from '../../src/testing/index.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

const partner = { sub: 'acme', client: 'acme', roles: ['partners'] }

describe('the policy that replaces plugins of Kong', () => {
  test('decides as the plugins did, and knows every path', () =>
    policyTest(kong, [
      { request: 'GET /status', expect: 'allowed' },
      { request: 'GET /orders/1', expect: 'missing_token' },
      { request: 'GET /orders/1', as: partner, expect: 'allowed' },
      { request: 'POST /orders', as: partner, body: {}, expect: 'allowed' },
      { request: 'GET /orders/1', as: { sub: 'other' }, expect: 'insufficient_permission' },
      { request: 'GET /other', as: partner, expect: 404 },
    ]))

  test('counts requests of a client, 60 in a minute', async () => {
    const tester = policyTester(kong)
    for (let sent = 0; sent < 60; sent++) await tester.request('GET /orders/1', { as: partner })
    expect(await tester.request('GET /orders/1', { as: partner })).toMatchObject({
      status: 429,
      reason: 'rate_limited:standard',
    })
  })
})

describe('the policy that replaces oauth2-proxy', () => {
  const staff = { sub: 'alice', roles: ['staff'], claims: { email: 'a@b.example', groups: ['x'] } }

  test('needs a caller with the role, on every path', () =>
    policyTest(oauth2Proxy, [
      { request: 'GET /any/page', expect: 401 },
      { request: 'GET /any/page', as: { sub: 'bob' }, expect: 'insufficient_permission' },
      { request: 'DELETE /any/page', as: { sub: 'alice', roles: ['staff'] }, expect: 405 },
    ]))

  test('sends the headers of oauth2-proxy to the origin, and not those of the client', async () => {
    const decision = await policyTester(oauth2Proxy).request('GET /any/page', {
      as: staff,
      headers: { 'X-Forwarded-Email': 'root@b.example' },
    })
    expect(decision).toMatchObject({
      allowed: true,
      origin: {
        headers: {
          'x-forwarded-user': 'alice',
          'x-forwarded-email': 'a@b.example',
          'x-forwarded-groups': 'x',
        },
      },
    })
  })
})

describe('the app that replaces jwk() of Hono', () => {
  let key: TestKey
  let provider: TestServer
  let redis: TestRedis

  beforeAll(async () => {
    key = await createKey('notes')
    provider = await startHttpServer((request, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      const metadata = { issuer: provider.url, jwks_uri: `${provider.url}/keys` }
      response.end(JSON.stringify(request.url === '/keys' ? { keys: [key.publicJwk] } : metadata))
    })
    redis = await startTestRedis()
  })

  afterAll(async () => {
    await provider?.close()
    await redis?.close()
  })

  test('answers its caller, and refuses others before the handler', async () => {
    const env = {
      ISSUER: provider.url,
      UPSTASH_REDIS_REST_URL: redis.url,
      UPSTASH_REDIS_REST_TOKEN: redis.token,
      REDIS_TIMEOUT_MS: '5000',
      // As the server of Node passes it.
      incoming: { socket: { remoteAddress: '192.0.2.1' } },
    }
    const get = async (path: string, claims?: Readonly<Record<string, unknown>>) => {
      const common = { iss: provider.url, aud: 'https://notes.example.com', sub: 'alice' }
      const token = claims && (await mint(key, { claims: { ...common, ...claims } }))
      const headers: HeadersInit = token === undefined ? {} : { Authorization: `Bearer ${token}` }
      return app.request(path, { headers }, env)
    }
    expect((await get('/about')).status).toBe(200)
    expect((await get('/auth/page')).status).toBe(401)
    expect((await get('/auth/page', { roles: [] })).status).toBe(403)
    expect((await get('/auth/page', { aud: 'https://other.example.com' })).status).toBe(401)
    const allowed = await get('/auth/page', { roles: ['reader'] })
    expect(await allowed.json()).toEqual({ sub: 'alice' })
  })
})
