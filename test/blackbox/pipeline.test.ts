import { beforeEach, describe, expect, inject, test } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'
import { becomesReady } from '../harness/recovery.ts'

const stack = inject('stack')
const [here, there] = stack.gateways

const token = (claims: Record<string, unknown> = {}) => mint(stack.inlineKey, { claims })
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
/** Returns the requests that reached the origin since the last `forget`. */
const atOrigin = () => recordsOf(stack.origin)

beforeEach(() => forget(stack.origin))

describe('an admitted request', () => {
  test('reaches the origin with a verified identity, and its response is returned', async () => {
    const jwt = await token({ sub: 'alice', tenant: 'acme', roles: ['reader'] })
    const response = await fetch(`${here}/orders?limit=5`, { headers: bearer(jwt) })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ method: 'GET', url: '/orders?limit=5' })
    expect(response.headers.get('ratelimit-policy')).toBe('"standard";q=100;w=60')
    expect(response.headers.get('ratelimit')).toMatch(/^"standard";r=\d+;t=\d+$/)
    const [request] = await atOrigin()
    expect(request?.headers).toMatchObject({
      'x-auth-subject': ['alice'],
      'x-auth-tenant': ['acme'],
      'x-auth-roles': ['reader'],
      'x-request-id': [response.headers.get('x-request-id')],
    })
    expect(request?.headers['x-auth-assertion']?.[0]).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    expect(request?.headers.authorization).toBeUndefined()
  })

  test('is accepted by the other gateway as well', async () => {
    const response = await fetch(`${there}/orders`, { headers: bearer(await token()) })
    expect(response.status).toBe(200)
  })

  test('HEAD follows GET', async () => {
    const response = await fetch(`${here}/orders`, {
      method: 'HEAD',
      headers: bearer(await token()),
    })
    expect(response.status).toBe(200)
    expect((await atOrigin())[0]?.method).toBe('HEAD')
  })
})

describe('a refused request gets its standard response and never reaches the origin', () => {
  test.each([
    ['GET', '/orders', {}, 401, 'missing_token'],
    ['GET', '/orders', { authorization: 'Bearer abc' }, 401, 'invalid_token'],
    ['GET', '/nowhere', {}, 404, 'not_found'],
    ['GET', '/', {}, 404, 'not_found'],
    ['PUT', '/orders', {}, 405, 'method_not_allowed'],
    ['OPTIONS', '/orders', {}, 405, 'method_not_allowed'],
    ['PROPFIND', '/orders', {}, 405, 'method_not_allowed'],
    ['GET', '/a%2fb', {}, 400, 'ambiguous_path'],
  ])('%s %s %o is %i %s [S49]', async (method, path, headers, status, code) => {
    const response = await fetch(here + path, { method, headers })
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const problem = (await response.json()) as Record<string, unknown>
    expect(problem).toMatchObject({ code, status, type: `urn:portcullis:problem:${code}` })
    expect(problem.requestId).toBe(response.headers.get('x-request-id'))
    expect(await atOrigin()).toEqual([])
  })

  test.each([
    ['PUT', '/orders', 'GET, HEAD, POST'],
    ['PATCH', '/orders/0190a4b0-5c1e-7f3a-8b2d-1c2d3e4f5a6b', 'DELETE, GET, HEAD'],
    ['DELETE', '/reports', 'POST'],
    ['POST', '/-/healthz', 'GET, HEAD'],
    ['POST', '/.well-known/jwks.json', 'GET, HEAD'],
  ])('%s %s lists the allowed methods: %s', async (method, path, allow) => {
    const response = await fetch(here + path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
  })

  test('without credentials the challenge has no error; with a bad token it has invalid_token [S29]', async () => {
    const none = await fetch(`${here}/orders`)
    expect(none.headers.get('www-authenticate')).toMatch(/^Bearer realm="portcullis"/)
    expect(none.headers.get('www-authenticate')).not.toContain('error')
    expect(none.headers.get('www-authenticate')).toContain('/.well-known/oauth-protected-resource')
    const bad = await fetch(`${here}/orders`, { headers: { authorization: 'Bearer a.b.c' } })
    expect(bad.headers.get('www-authenticate')).toContain('error="invalid_token"')
  })

  test('a missing permission is named as a scope [S29]', async () => {
    const response = await fetch(`${here}/orders`, {
      method: 'POST',
      headers: { ...bearer(await token()), 'content-type': 'application/json' },
      body: '{"item":"nails","quantity":1}',
    })
    expect(response.status).toBe(403)
    expect(response.headers.get('www-authenticate')).toContain(
      'error="insufficient_scope", scope="orders:write"',
    )
    expect(await atOrigin()).toEqual([])
  })

  test('a schema error is not described to callers who may not use the route', async () => {
    const response = await fetch(`${here}/orders`, {
      method: 'POST',
      headers: { ...bearer(await token()), 'content-type': 'application/json' },
      body: '{"wrong":1}',
    })
    expect(response.status).toBe(403)
    expect(await response.json()).not.toHaveProperty('errors')
  })

  test('invalid input is 422 with its errors', async () => {
    const response = await fetch(`${here}/orders`, {
      method: 'POST',
      headers: {
        ...bearer(await token({ roles: ['writer'] })),
        'content-type': 'application/json',
      },
      body: '{"item":"nails","quantity":0}',
    })
    expect(response.status).toBe(422)
    expect(await response.json()).toMatchObject({ errors: [{ in: 'body', path: '/quantity' }] })
    expect(await atOrigin()).toEqual([])
  })

  test('a body over the maximum is 413, with or without a Content-Length [S62]', async () => {
    const headers = {
      ...bearer(await token({ roles: ['writer'] })),
      'content-type': 'application/json',
    }
    const body = JSON.stringify({ item: 'x'.repeat(70_000), quantity: 1 })
    const declared = await fetch(`${here}/orders`, { method: 'POST', headers, body })
    expect(declared.status).toBe(413)
    const untold = await fetch(`${here}/orders`, {
      method: 'POST',
      headers,
      body: new Blob([body]).stream(),
      duplex: 'half',
    } as RequestInit)
    expect(untold.status).toBe(413)
    expect(await atOrigin()).toEqual([])
  })
})

describe('public endpoints of the gateway', () => {
  test('report that it is live and ready', async () => {
    await becomesReady(stack.gateways)
    expect((await fetch(`${here}/-/healthz`)).status).toBe(200)
    const ready = await fetch(`${here}/-/readyz`)
    expect(ready.status).toBe(200)
    expect(await ready.json()).toMatchObject({
      status: 'ready',
      checks: { redis: 'ok', keySets: 'ok', queue: 'ok' },
      breakers: { redis: 'closed', key_set: 'closed' },
    })
  })

  test('publish public keys only, with an ETag [S46]', async () => {
    const response = await fetch(`${here}/.well-known/jwks.json`)
    expect(response.status).toBe(200)
    const etag = response.headers.get('etag')
    expect(etag).toBeTruthy()
    const { keys } = (await response.json()) as { keys: Record<string, unknown>[] }
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) {
      for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'])
        expect(key).not.toHaveProperty(member)
    }
    const again = await fetch(`${here}/.well-known/jwks.json`, {
      headers: { 'if-none-match': etag ?? '' },
    })
    expect(again.status).toBe(304)
  })

  test('name its authorization servers (RFC 9728)', async () => {
    const metadata = await (await fetch(`${here}/.well-known/oauth-protected-resource`)).json()
    expect(metadata).toMatchObject({
      authorization_servers: expect.arrayContaining(['https://issuer.test']),
      bearer_methods_supported: ['header'],
    })
  })
})
