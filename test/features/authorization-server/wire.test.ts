import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { ISSUER } from '../../harness/issuer.ts'
import { PUBLIC_URL, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const PATHS = ['/oauth/token', '/oauth/revoke', '/oauth/introspect']
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

let gateway: TestGateway
let client: TestClient
beforeAll(async () => {
  gateway = await startGateway()
  client = await gateway.createClient()
})
afterAll(() => gateway.close())
beforeEach(() => gateway.forgetFailures())

const good = () => ({
  client_id: client.id,
  client_secret: client.secret,
  grant_type: 'client_credentials',
})
const encoded = (more = '') => `${new URLSearchParams(good())}${more}`

describe('the OAuth endpoints [S43]', () => {
  test('answer uncacheable JSON, for errors as well', async () => {
    const replies = [
      await gateway.post('/oauth/token', good()),
      await gateway.post('/oauth/token', { ...good(), grant_type: 'password' }),
      await gateway.post('/oauth/introspect', { ...good(), token: 'x' }),
      await gateway.post('/oauth/token', {}),
    ]
    expect(replies.map(({ status }) => status)).toEqual([200, 400, 200, 401])
    for (const { headers } of replies) {
      expect(headers.get('content-type')).toMatch(/^application\/json/)
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('pragma')).toBe('no-cache')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
    }
    expect((await gateway.revoke(client, 'x')).headers.get('cache-control')).toBe('no-store')
  })

  test.each(PATHS)('%s waits at most three seconds for a form', async (path) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let isAnswered = false
      const pulled = Promise.withResolvers<void>()
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          pulled.resolve()
          controller.enqueue(new TextEncoder().encode('grant_type='))
          return new Promise(() => undefined)
        },
      })
      const init = { method: 'POST', headers: FORM, body, duplex: 'half' }
      const reply = gateway.send(path, init).then((answer) => {
        isAnswered = true
        return answer
      })
      await pulled.promise
      await vi.advanceTimersByTimeAsync(2_900)
      expect(isAnswered).toBe(false)
      await vi.advanceTimersByTimeAsync(200)
      const { status, text } = await reply
      expect([status, JSON.parse(text).error]).toEqual([400, 'invalid_request'])
    } finally {
      vi.useRealTimers()
    }
  })

  test.each(PATHS)('%s accepts only POST', async (path) => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
      const { status, headers, text } = await gateway.send(path, { method })
      expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST'])
      if (method === 'HEAD') expect(text).toBe('')
      else expect(JSON.parse(text).error).toBe('invalid_request')
    }
  })

  test.each([
    ['JSON', 'application/json', JSON.stringify],
    ['text', 'text/plain', () => encoded()],
    ['no content type', '', () => encoded()],
    ['two content types', 'application/x-www-form-urlencoded, text/plain', () => encoded()],
    ['multipart', 'multipart/form-data; boundary=x', () => encoded()],
    ['another charset', 'application/x-www-form-urlencoded; charset=utf-16', () => encoded()],
  ])('refuse %s', async (_, type, body) => {
    const init = { method: 'POST', body: new TextEncoder().encode(body(good())) }
    const headers = { 'Content-Type': type }
    const reply = await gateway.send('/oauth/token', init, type === '' ? {} : { headers })
    expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test('accept UTF-8 as declared charset', async () => {
    const headers = { 'Content-Type': 'Application/X-WWW-Form-Urlencoded; charset="UTF-8"' }
    expect((await gateway.post('/oauth/token', encoded(), { headers })).status).toBe(200)
  })

  test.each([
    ['a parameter twice', '&grant_type=client_credentials'],
    ['a parameter twice, once escaped', '&grant%5Ftype=client_credentials'],
    ['a parameter twice, once empty', '&grant_type='],
    ['an unknown parameter twice', '&x=1&x=1'],
    ['a broken escape', '&x=%'],
    ['invalid UTF-8', '&x=%ff'],
    ['a control character', '&x=%00'],
    ['a line break in a name', '&x%0a=1'],
  ])('refuse %s', async (_, more) => {
    const { status, body } = await gateway.post('/oauth/token', encoded(more))
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' })
  })

  test('ignore an unknown parameter and a parameter without a value', async () => {
    expect((await gateway.post('/oauth/token', encoded('&x=1&scope=&&y'))).status).toBe(200)
  })

  test('ignore parameters in the query', async () => {
    for (const query of ['?x=1', '?client_secret=x', '?scope=']) {
      const { status, body } = await gateway.post(`/oauth/token${query}`, good())
      expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' })
    }
  })

  test('accept at most 64 KiB, declared or counted [S62]', async () => {
    const body = encoded(`&x=${'x'.repeat(65_536)}`)
    const declared = await gateway.post('/oauth/token', body)
    expect(declared).toMatchObject({ status: 413, body: { error: 'invalid_request' } })
    const stream = new Blob([body]).stream()
    const init = { method: 'POST', body: stream, duplex: 'half' } as RequestInit
    const counted = await gateway.send('/oauth/token', init, { headers: FORM })
    expect(counted.status).toBe(413)
  })

  test('repeat no input in errors, and describe every cause alike', async () => {
    const marker = 'marker-of-this-test'
    const replies = [
      await gateway.token(client, { grant_type: marker }),
      await gateway.token(client, { ...good(), scope: `"${marker}"` }),
      await gateway.token(client, { ...good(), resource: `https://${marker}.test` }),
      await gateway.exchange(client, marker),
      await gateway.refresh(client, marker),
      await gateway.post('/oauth/token', { client_id: marker, client_secret: marker }),
    ]
    expect(replies.map(({ body }) => body.error)).toEqual([
      'unsupported_grant_type',
      'invalid_scope',
      'invalid_target',
      'invalid_request',
      'invalid_grant',
      'invalid_client',
    ])
    for (const { text, headers } of replies) {
      expect(text + JSON.stringify([...headers])).not.toContain(marker)
      expect(JSON.parse(text).error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    }
  })

  test('answer 503 with Retry-After while Redis is unreachable [R01]', async () => {
    const away = await startGateway()
    const other = await away.createClient()
    await away.redis.close()
    for (const path of PATHS) {
      const params = { client_id: other.id, client_secret: other.secret, token: 'x' }
      const reply = await away.post(path, { ...params, ...GRANT })
      expect(reply).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } })
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(reply.text).not.toMatch(/redis|upstash|127\.0\.0\.1/i)
    }
    await away.close()
  })
})

const GRANT = { grant_type: 'client_credentials' }

describe('discovery documents', () => {
  test('the metadata has the exact issuer and only endpoints that exist', async () => {
    const { status, headers, body } = await gateway.send(
      '/.well-known/oauth-authorization-server',
      {},
    )
    expect(status).toBe(200)
    expect(headers.get('etag')).not.toBeNull()
    expect(headers.get('cache-control')).toBe('public, max-age=300')
    expect(body).toMatchObject({
      issuer: PUBLIC_URL,
      token_endpoint: `${PUBLIC_URL}/oauth/token`,
      jwks_uri: `${PUBLIC_URL}/.well-known/jwks.json`,
      grant_types_supported: expect.arrayContaining(['client_credentials', 'refresh_token']),
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256', 'Ed25519']),
      token_endpoint_auth_signing_alg_values_supported: expect.arrayContaining(['Ed25519']),
    })
    for (const [name, value] of Object.entries(body)) expect(value, name).not.toEqual([])
    for (const name of ['token_endpoint', 'revocation_endpoint', 'introspection_endpoint']) {
      const { pathname } = new URL(body[name])
      expect((await gateway.post(pathname, {})).status, name).toBe(401)
    }
    for (const name of Object.keys(body).filter((key) => key.endsWith('_auth_methods_supported')))
      expect(body[name]).not.toContain('none')
  })

  test('the protected resource metadata names its authorization servers and DPoP', async () => {
    const { body } = await gateway.send('/.well-known/oauth-protected-resource', {})
    expect(body.authorization_servers).toEqual([ISSUER, PUBLIC_URL])
    expect(body.dpop_signing_alg_values_supported).toEqual(
      expect.arrayContaining(['ES256', 'Ed25519']),
    )
  })

  test('a gateway without signing keys has no authorization server', async () => {
    const plain = await startGateway({ signs: false })
    try {
      for (const path of PATHS) expect((await plain.post(path, {})).status).toBe(404)
      const { status } = await plain.send('/.well-known/oauth-authorization-server', {})
      expect(status).toBe(404)
    } finally {
      await plain.close()
    }
  })
})

describe('the audit trail of OAuth', () => {
  test('has one event per request, with the precise reason and without secrets [S66]', async () => {
    gateway.events.length = 0
    const login = await gateway.login({ claims: { sub: 'audited' } })
    const { body } = await gateway.exchange(client, login)
    await gateway.token(client, { ...GRANT, scope: 'a:b' })
    await gateway.token({ ...client, secret: 'wrong' }, GRANT)
    await gateway.revoke(client, body.refresh_token)
    await gateway.send('/oauth/token', { method: 'GET' })
    const recorded = gateway.events.map(({ route, decision, reason, status, actor }) => ({
      route,
      decision,
      reason,
      status,
      subject: actor.subject,
    }))
    expect(recorded).toEqual([
      { route: '/oauth/token', decision: 'allow', reason: 'ok', status: 200, subject: 'audited' },
      {
        route: '/oauth/token',
        decision: 'deny',
        reason: 'invalid_scope:scope_ungranted',
        status: 400,
        subject: client.id,
      },
      {
        route: '/oauth/token',
        decision: 'deny',
        reason: 'invalid_client:client_secret_post',
        status: 401,
        subject: null,
      },
      { route: '/oauth/revoke', decision: 'allow', reason: 'ok', status: 200, subject: 'audited' },
      {
        route: '/oauth/token',
        decision: 'deny',
        reason: 'method_not_allowed',
        status: 405,
        subject: null,
      },
    ])
    const { actor } = gateway.events[0] ?? {}
    expect(actor).toMatchObject({ issuer: ISSUER, client: client.id })
    expect(actor?.tokenIdHash).toMatch(/^[\w-]{43}$/)
    const trail = JSON.stringify(gateway.events)
    for (const secret of [client.secret, body.access_token, body.refresh_token, login])
      expect(trail).not.toContain(secret)
  })
})
