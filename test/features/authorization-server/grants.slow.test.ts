import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { lanesOfRun } from '../../harness/lanes.ts'
import { ACCESS_TOKEN, PUBLIC_URL, privateJwk, startGateway, type TestGateway } from './gateway.ts'

const OTHER_API = 'https://other-api.test/v1'
const GRANT = { grant_type: 'client_credentials' }

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe('client_credentials', () => {
  test('returns a token for the client itself, without a refresh token', async () => {
    const client = await gateway.createClient({ roles: ['reader'], tenant: 'acme' })
    const { status, body } = await gateway.token(client, GRANT)
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      // Less by one if a second begins in between.
      expires_in: expect.closeTo(900, -1),
    })
    const claims = decodeJwt(body.access_token)
    expect(claims).toMatchObject({
      iss: PUBLIC_URL,
      sub: client.id,
      client_id: client.id,
      aud: PUBLIC_URL,
      roles: ['reader'],
      tenant: 'acme',
    })
    expect(claims).not.toHaveProperty('sub_iss')
    expect((await gateway.call(body.access_token)).status).toBe(200)
  })

  test('is refused for a client without this grant', async () => {
    const client = await gateway.createClient({ grants: ['refresh_token'] })
    const { status, body } = await gateway.token(client, GRANT)
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'unauthorized_client' })
    expect((await gateway.token(client, {})).body.error).toBe('invalid_request')
    for (const grant_type of ['password', 'authorization_code', 'CLIENT_CREDENTIALS'])
      expect((await gateway.token(client, { grant_type })).body.error).toBe(
        'unsupported_grant_type',
      )
  })

  test('returns the requested scope, within the scopes of the client', async () => {
    const client = await gateway.createClient({ scopes: ['orders:read', 'orders:write'] })
    const all = await gateway.token(client, GRANT)
    expect(all.body.scope).toBe('orders:read orders:write')
    const some = await gateway.token(client, { ...GRANT, scope: 'orders:read' })
    expect(some.body.scope).toBe('orders:read')
    expect(decodeJwt(some.body.access_token).scope).toBe('orders:read')
    const more = await gateway.token(client, { ...GRANT, scope: 'orders:read orders:delete' })
    expect(more).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  })

  test('gives operator permissions only to a client that has them', async () => {
    const client = await gateway.createClient()
    const { body } = await gateway.token(client, { ...GRANT, scope: 'portcullis:clients:create' })
    expect(body.error).toBe('invalid_scope')
    expect(
      (await gateway.call((await gateway.token(client, GRANT)).body.access_token)).status,
    ).toBe(403)
  })

  test('issues for the audiences of the client, by resource or by name', async () => {
    const client = await gateway.createClient({ audiences: [PUBLIC_URL, OTHER_API, 'reports'] })
    const audience = async (params: object) => {
      const { body } = await gateway.token(client, { ...GRANT, ...params })
      return body.error ?? decodeJwt(body.access_token).aud
    }
    expect(await audience({})).toBe(PUBLIC_URL)
    expect(await audience({ resource: OTHER_API })).toBe(OTHER_API)
    expect(await audience({ audience: 'reports' })).toBe('reports')
    const both = { resource: [PUBLIC_URL, OTHER_API], audience: [OTHER_API, 'reports'] }
    expect(await audience(both)).toEqual([PUBLIC_URL, OTHER_API, 'reports'])
    expect(await audience({ resource: 'https://elsewhere.test' })).toBe('invalid_target')
    expect(await audience({ resource: `${OTHER_API}#x` })).toBe('invalid_target')
    expect(await audience({ resource: 'reports' })).toBe('invalid_target')
    expect(await audience({ resource: `${OTHER_API}/` })).toBe('invalid_target')
    expect(await audience({ resource: [OTHER_API, 'https://elsewhere.test'] })).toBe(
      'invalid_target',
    )
  })

  test('accepts any equivalent URL of the gateway itself as resource, and no other', async () => {
    const client = await gateway.createClient({ roles: ['reader'] })
    const bodyFor = async (params: object) =>
      (await gateway.token(client, { ...GRANT, ...params })).body
    for (const resource of [
      ...[
        `${PUBLIC_URL}/`,
        new URL(PUBLIC_URL).href,
        'HTTPS://GATEWAY.TEST',
        'https://Gateway.test/',
      ],
      ...['https://gateway.test:443', 'https://gateway.test:443/', [PUBLIC_URL, `${PUBLIC_URL}/`]],
    ]) {
      const { access_token } = await bodyFor({ resource })
      expect(decodeJwt(access_token).aud, String(resource)).toBe(PUBLIC_URL)
      expect((await gateway.call(access_token)).status).toBe(200)
    }
    for (const resource of [
      ...['http://gateway.test/', 'https://gateway.test:80/', 'https://gateway.test:8443'],
      ...['https://gateway.test//', 'https://gateway.test/.', 'https://gateway.test/%2f'],
      ...['https://gateway.test/?', 'https://gateway.test?', 'https://gateway.test/a/..'],
      ...['https://gateway.test./', 'https://x@gateway.test/', 'https:gateway.test/'],
      ...['https:\\\\gateway.test/', 'https://gateway.test:/', 'https://gateway.test:0443/'],
      ...['https://gateway.test\\', ' https://gateway.test/', 'https://gateway%2etest/'],
      ...['https://gatewaY.test/x', 'https://ɡateway.test/', 'https://gateway.teſt/'],
    ])
      expect((await bodyFor({ resource })).error, resource).toBe('invalid_target')
    expect((await bodyFor({ audience: `${PUBLIC_URL}/` })).error).toBe('invalid_target')
    const elsewhere = await gateway.createClient({ audiences: [OTHER_API] })
    const reply = await gateway.token(elsewhere, { ...GRANT, resource: `${PUBLIC_URL}/` })
    expect(reply.body.error).toBe('invalid_target')
    const literal = await gateway.createClient({ audiences: [`${PUBLIC_URL}/`] })
    const { body } = await gateway.token(literal, { ...GRANT, resource: `${PUBLIC_URL}/` })
    expect(decodeJwt(body.access_token).aud).toBe(`${PUBLIC_URL}/`)
  })

  test('issues tokens for another audience that the gateway refuses', async () => {
    const client = await gateway.createClient({ roles: ['reader'], audiences: [OTHER_API] })
    const { body } = await gateway.token(client, GRANT)
    const before = gateway.originCalls()
    expect((await gateway.call(body.access_token)).status).toBe(401)
    expect(gateway.originCalls()).toBe(before)
  })

  test('uses the registered format, algorithm and lifetime of the client', async () => {
    for (const [tokenAlgorithm, alg] of [
      [undefined, 'ES256'],
      ['RS256', 'RS256'],
      ['EdDSA', 'EdDSA'],
      ['Ed25519', 'Ed25519'],
    ] as const) {
      const client = await gateway.createClient({
        tokenAlgorithm,
        accessTokenSeconds: 300,
        roles: ['reader'],
      })
      const { body } = await gateway.token(client, GRANT)
      // A second may end between the claim `exp` and the response.
      expect([299, 300]).toContain(body.expires_in)
      expect(decodeProtectedHeader(body.access_token)).toMatchObject({ alg, typ: 'at+jwt' })
      expect((await gateway.call(body.access_token)).status).toBe(200)
    }
    const opaque = await gateway.createClient({ tokenFormat: 'opaque', roles: ['reader'] })
    const { body } = await gateway.token(opaque, GRANT)
    expect(body.access_token).toMatch(/^[\da-f-]{36}$/)
    expect((await gateway.call(body.access_token)).status).toBe(200)
  })

  test.each(['client', 'subject', 'tenant'] as const)(
    'issues a valid token right after a cutoff of the client (as a %s)',
    async (kind) => {
      const tenant = crypto.randomUUID()
      const client = await gateway.createClient({ roles: ['reader'], tenant })
      const old = await gateway.token(client, GRANT)
      const value = kind === 'tenant' ? tenant : client.id
      const revokeBefore = { kind, issuer: PUBLIC_URL, value }
      const atSeconds = nowSeconds() + 1
      await gateway.revocations.revokeBefore({ ...revokeBefore, atSeconds, ttlSeconds: 600 })
      expect((await gateway.call(old.body.access_token)).status).toBe(401)
      const fresh = await gateway.token(client, GRANT)
      expect(decodeJwt(fresh.body.access_token).iat).toBe(atSeconds + 1)
      expect((await gateway.call(fresh.body.access_token)).status).toBe(200)
      await gateway.revocations.revokeBefore({
        ...revokeBefore,
        atSeconds: nowSeconds() + 60,
        ttlSeconds: 600,
      })
      expect((await gateway.token(client, GRANT)).body.error).toBe('invalid_grant')
    },
  )

  test.each(['client', 'subject', 'tenant'] as const)(
    'gets 503 if the cutoff of the %s is unreadable [R06]',
    async (kind) => {
      const tenant = crypto.randomUUID()
      const client = await gateway.createClient({ tenant })
      const value = kind === 'tenant' ? tenant : client.id
      const key = await revokedBeforeKey(DEFAULT_KEYS, kind, PUBLIC_URL, value)
      for (const write of ['set', 'lpush'] as const) {
        await gateway.redis.direct.del(key)
        await gateway.redis.direct.call(write, key, 'x')
        expect((await gateway.token(client, GRANT)).status).toBe(503)
      }
      await gateway.redis.direct.del(key)
      expect((await gateway.token(client, GRANT)).status).toBe(200)
    },
  )
})

test('a request with a JWT makes one call to Redis, with an opaque token two, an exchange three, a refresh three', async () => {
  const client = await gateway.createClient()
  const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
  const tenant = await gateway.createClient({ tenant: 'acme' })
  // The address is known after this request, and later ones do not store it again.
  for (const each of [client, opaque, tenant]) await gateway.token(each, GRANT)
  const calls = async (request: () => Promise<{ status: number }>) => {
    const before = gateway.redis.calls()
    expect((await request()).status).toBe(200)
    return gateway.redis.calls() - before
  }
  expect(await calls(() => gateway.token(client, GRANT))).toBe(1)
  expect(await calls(() => gateway.token(opaque, GRANT))).toBe(2)
  expect(await calls(() => gateway.token(tenant, GRANT))).toBe(2)
  const login = await gateway.login()
  expect(await calls(() => gateway.exchange(client, login))).toBe(3)
  const { refresh_token } = (await gateway.exchange(client, login)).body
  // With lanes, the control lane says first whether the session is revoked.
  const expected = lanesOfRun > 0 ? 4 : 3
  expect(await calls(() => gateway.refresh(client, refresh_token))).toBe(expected)
})

describe('token exchange', () => {
  test('turns a login into a session with its subject, issuer, permissions and client', async () => {
    const client = await gateway.createClient()
    const login = await gateway.login({ claims: { sub: 'alice', tenant: 'acme', sid: 'theirs' } })
    const { body } = await gateway.exchange(client, login)
    expect(body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      // Less by one if a second begins in between.
      expires_in: expect.closeTo(900, -1),
    })
    const claims = decodeJwt(body.access_token)
    expect(claims).toMatchObject({
      iss: PUBLIC_URL,
      sub: 'alice',
      sub_iss: ISSUER,
      client_id: client.id,
      tenant: 'acme',
      roles: ['reader'],
      aud: PUBLIC_URL,
    })
    expect(claims.sid).toMatch(/^[\da-f]{8}-/)
    expect((await gateway.call(body.access_token)).status).toBe(200)
  })

  test('returns no refresh token to a client that may not refresh', async () => {
    const grants = ['urn:ietf:params:oauth:grant-type:token-exchange'] as const
    const client = await gateway.createClient({ grants: [...grants] })
    const { body } = await gateway.exchange(client, await gateway.login())
    expect(body).not.toHaveProperty('refresh_token')
    expect(decodeJwt(body.access_token)).not.toHaveProperty('sid')
  })

  test('accepts each URN for the type of the subject token, and returns the requested token', async () => {
    const client = await gateway.createClient()
    const name = (type: string) => `urn:ietf:params:oauth:token-type:${type}`
    const login = await gateway.login()
    for (const type of ['access_token', 'jwt', 'id_token']) {
      const { status } = await gateway.exchange(client, login, { subject_token_type: name(type) })
      expect(status, type).toBe(200)
    }
    const jwt = await gateway.exchange(client, login, { requested_token_type: name('jwt') })
    expect(jwt.body.issued_token_type).toBe(name('jwt'))
    const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
    const refused = await gateway.exchange(opaque, login, { requested_token_type: name('jwt') })
    expect(refused.body.error).toBe('invalid_request')
  })

  test.each([
    ['no subject token', { subject_token: '' }],
    ['no type', { subject_token_type: '' }],
    ['an unknown type', { subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }],
    ['an actor token', { actor_token: 'x', actor_token_type: ACCESS_TOKEN }],
    ['an actor token type', { actor_token_type: ACCESS_TOKEN }],
    [
      'a refresh token as requested type',
      {
        requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
      },
    ],
  ])('with %s is refused', async (_, params) => {
    const client = await gateway.createClient()
    const { status, body } = await gateway.exchange(client, await gateway.login(), params)
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' })
  })

  test('refuses an invalid subject token, for every cause', async () => {
    const client = await gateway.createClient()
    const now = nowSeconds()
    const stranger = await createKey('idp')
    const { body } = await gateway.exchange(client, await gateway.login())
    const tokens = [
      await gateway.login({ claims: { aud: 'https://elsewhere.test' } }),
      await gateway.login({ claims: { iss: 'https://stranger.test' } }),
      await gateway.login({ claims: { iat: now - 600, exp: now - 60 } }),
      await gateway.login({ claims: { sub: undefined } }),
      await gateway.login({ header: { typ: 'JWT' } }),
      await mint(stranger, { claims: { aud: PUBLIC_URL } }),
      // Only the gateway itself may assert a subject of another issuer.
      await mint(stranger, { claims: { aud: PUBLIC_URL, iss: PUBLIC_URL, sub_iss: ISSUER } }),
      crypto.randomUUID(),
      await gateway.keep(crypto.randomUUID(), { expiresAtSeconds: 1 }),
      await gateway.keep(crypto.randomUUID(), { audiences: ['https://elsewhere.test'] }),
      await gateway.keep(newApiKey(), { kind: 'api_key', expiresAtSeconds: null }),
      `pk_${'0'.repeat(49)}`,
      body.refresh_token,
      'x',
      'x'.repeat(9_000),
    ]
    for (const token of tokens) {
      const reply = await gateway.exchange(client, token)
      expect([reply.status, reply.body.error]).toEqual([400, 'invalid_request'])
    }
  })

  test('leaves no session behind if it fails', async () => {
    const [one, other] = [privateJwk('es', 'ES256', 'ec'), privateJwk('es', 'ES256', 'ec')]
    const broken = await startGateway({ signingKeys: [{ ...one, d: other.d }] })
    try {
      const client = await broken.createClient()
      const { status, body } = await broken.exchange(client, await broken.login())
      expect({ status, error: body.error }).toEqual({
        status: 503,
        error: 'temporarily_unavailable',
      })
      expect(await broken.redis.direct.keys('pc:*refresh:*')).toEqual([])
      const opaque = await broken.createClient({ tokenFormat: 'opaque' })
      expect((await broken.exchange(opaque, await broken.login())).status).toBe(200)
      expect(await broken.redis.direct.keys('pc:*refresh:*')).toHaveLength(1)
    } finally {
      await broken.close()
    }
  })

  test('refuses a token of a foreign issuer that names another subject issuer', async () => {
    const client = await gateway.createClient()
    const login = await gateway.login({ claims: { sub_iss: 'https://bank.test' } })
    const { body } = await gateway.exchange(client, login)
    expect(decodeJwt(body.access_token).sub_iss).toBe(ISSUER)
  })

  test('refuses a subject token that is revoked, under a cutoff, or of a banned subject', async () => {
    const client = await gateway.createClient()
    const login = async (sub: string) => gateway.login({ claims: { sub, jti: `of ${sub}` } })
    const { tokenIdHash } = await import('../../../src/access/token-id.ts')
    const revoked = await login('revoked')
    await gateway.revocations.revokeToken({
      tokenIdHash: await tokenIdHash(ISSUER, 'of revoked'),
      untilSeconds: nowSeconds() + 600,
    })
    expect((await gateway.exchange(client, revoked)).body.error).toBe('invalid_request')

    const cut = await login('cut')
    const revokeBefore = { kind: 'subject', issuer: ISSUER, value: 'cut' } as const
    await gateway.revocations.revokeBefore({
      ...revokeBefore,
      atSeconds: nowSeconds(),
      ttlSeconds: 600,
    })
    expect((await gateway.exchange(client, cut)).body.error).toBe('invalid_request')

    const key = `pc:ban:subject:${encodeURIComponent(ISSUER)}:banned`
    await gateway.redis.direct.set(key, nowSeconds() + 60, 'EX', 60)
    const banned = await gateway.exchange(client, await login('banned'))
    expect(banned).toMatchObject({ status: 403, body: { error: 'access_denied' } })
  })

  test('gets 503 if a cutoff is unreadable [R06]', async () => {
    const client = await gateway.createClient()
    const key = `pc:cutoff:subject:${encodeURIComponent(ISSUER)}:odd`
    for (const write of ['set', 'lpush'] as const) {
      await gateway.redis.direct.del(key)
      await gateway.redis.direct.call(write, key, 'x')
      const login = await gateway.login({ claims: { sub: 'odd' } })
      expect((await gateway.exchange(client, login)).status).toBe(503)
    }
  })

  test('begins a valid session for a new login right after "end all sessions"', async () => {
    const client = await gateway.createClient()
    const at = nowSeconds()
    const login = await gateway.login({ claims: { sub: 'back', iat: at + 2 } })
    // The clock that set the cutoff is slightly ahead, so the cutoff is in this gateway's future.
    const revokeBefore = { kind: 'subject', issuer: ISSUER, value: 'back' } as const
    await gateway.revocations.revokeBefore({ ...revokeBefore, atSeconds: at + 1, ttlSeconds: 600 })
    const { body } = await gateway.exchange(client, login)
    expect(decodeJwt(body.access_token).iat).toBe(at + 2)
    expect((await gateway.call(body.access_token)).status).toBe(200)
    const next = await gateway.refresh(client, body.refresh_token)
    expect(next.status).toBe(200)
    expect((await gateway.call(next.body.access_token)).status).toBe(200)
  })

  test('narrows the scope by the client and by the scope of the login', async () => {
    const client = await gateway.createClient({ scopes: ['orders:read', 'orders:write'] })
    const login = await gateway.login({ claims: { scope: 'orders:read orders:delete' } })
    const { body } = await gateway.exchange(client, login)
    expect(body.scope).toBe('orders:read')
    for (const scope of ['orders:write', 'orders:delete', 'openid'])
      expect((await gateway.exchange(client, login, { scope })).body.error).toBe('invalid_scope')
    const other = await gateway.login({ claims: { scope: 'other:read' } })
    expect((await gateway.exchange(client, other)).body.error).toBe('invalid_scope')
  })

  test('ignores scopes of the login that name no permission of the policy, as a request does', async () => {
    const client = await gateway.createClient()
    const scope = 'openid read:orders urn:example:scope'
    const login = await gateway.login({ claims: { roles: ['reader'], scope } })
    const { body } = await gateway.exchange(client, login)
    expect(body.scope).toBe('openid')
    expect((await gateway.call(body.access_token)).status).toBe(200)
    expect((await gateway.exchange(client, login, { scope: 'orders:read' })).status).toBe(200)
    for (const scope of ['read:orders', 'orders:write', 'profile'])
      expect((await gateway.exchange(client, login, { scope })).body.error).toBe('invalid_scope')
    const without = await gateway.login({ claims: { roles: [], scope } })
    const granted = await gateway.exchange(client, without, { scope: 'orders:read' })
    expect(granted.body.error).toBe('invalid_scope')
  })

  describe('token exchange of a token of the gateway itself', () => {
    test('returns a narrower token of the same session, which ends no later and cannot be refreshed', async () => {
      const front = await gateway.createClient({ accessTokenSeconds: 300 })
      const back = await gateway.createClient({ accessTokenSeconds: 3_600 })
      const login = await gateway.login({ claims: { scope: 'orders:read orders:write' } })
      const session = (await gateway.exchange(front, login)).body
      const { body } = await gateway.exchange(back, session.access_token, { scope: 'orders:read' })
      expect(body).not.toHaveProperty('refresh_token')
      const [outer, inner] = [session.access_token, body.access_token].map((jwt) => decodeJwt(jwt))
      expect(inner).toMatchObject({
        sub: outer?.sub,
        sub_iss: ISSUER,
        sid: outer?.sid,
        client_id: back.id,
        scope: 'orders:read',
        exp: outer?.exp,
      })
      const wider = await gateway.exchange(back, body.access_token, { scope: 'orders:write' })
      expect(wider.body.error).toBe('invalid_scope')
      // Logout revokes the exchanged tokens of the session as well.
      expect((await gateway.call(body.access_token)).status).toBe(200)
      await gateway.revoke(front, session.refresh_token)
      expect((await gateway.call(body.access_token)).status).toBe(401)
      expect((await gateway.exchange(back, session.access_token)).status).toBe(400)
    })

    test('accepts an opaque token, and refuses an API key', async () => {
      const front = await gateway.createClient({ tokenFormat: 'opaque' })
      const session = (await gateway.exchange(front, await gateway.login())).body
      const { body } = await gateway.exchange(await gateway.createClient(), session.access_token)
      expect(decodeJwt(body.access_token).sid).toMatch(/^[\da-f]{8}-/)
      await gateway.revoke(front, session.access_token)
      expect((await gateway.exchange(front, session.access_token)).status).toBe(400)
    })

    test('cannot extend a token without a session', async () => {
      const grants = [
        'client_credentials',
        'urn:ietf:params:oauth:grant-type:token-exchange',
      ] as const
      const client = await gateway.createClient({ grants: [...grants], accessTokenSeconds: 300 })
      const long = await gateway.createClient({ grants: [...grants], accessTokenSeconds: 3_600 })
      const first = (await gateway.token(client, GRANT)).body.access_token
      const second = (await gateway.exchange(long, first)).body.access_token
      expect(decodeJwt(second).exp).toBe(decodeJwt(first).exp)
    })
  })
})
