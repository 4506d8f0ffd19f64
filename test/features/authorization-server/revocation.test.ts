import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { PUBLIC_URL, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const OTHER_API = 'https://other-api.test'

let gateway: TestGateway
let client: TestClient
let stranger: TestClient
beforeAll(async () => {
  gateway = await startGateway()
  client = await gateway.createClient()
  stranger = await gateway.createClient({ audiences: [OTHER_API] })
})
afterAll(() => gateway.close())

const open = async (mine = client, claims: object = {}) =>
  (await gateway.exchange(mine, await gateway.login({ claims: { ...claims } }))).body

/** Stores an API key as the admin API does. */
const apiKey = () =>
  gateway.keep(newApiKey(), { kind: 'api_key', subject: 'a machine', expiresAtSeconds: null })

describe('revocation', () => {
  test.each(['jwt', 'opaque'] as const)(
    'of a refresh token ends its session and every access token of it (%s) [S30]',
    async (tokenFormat) => {
      const mine = await gateway.createClient({ tokenFormat })
      const first = await open(mine)
      const second = (await gateway.refresh(mine, first.refresh_token)).body
      for (const { access_token } of [first, second])
        expect((await gateway.call(access_token)).status).toBe(200)
      const before = gateway.originCalls()
      const { status, text } = await gateway.revoke(mine, second.refresh_token)
      expect({ status, text }).toEqual({ status: 200, text: '' })
      for (const { access_token } of [first, second])
        expect((await gateway.call(access_token)).status).toBe(401)
      expect(gateway.originCalls()).toBe(before)
      expect((await gateway.refresh(mine, second.refresh_token)).body.error).toBe('invalid_grant')
    },
  )

  test.each(['jwt', 'opaque'] as const)(
    'of an access token ends that token, in another isolate too (%s) [S30]',
    async (tokenFormat) => {
      const mine = await gateway.createClient({ tokenFormat })
      const { access_token, refresh_token } = await open(mine)
      const there = gateway.isolate()
      const askThere = async () => {
        const headers = { Authorization: `Bearer ${access_token}` }
        const reply = await there.fetch(new Request(`${PUBLIC_URL}/orders`, { headers }))
        return reply.status
      }
      expect([await askThere(), (await gateway.call(access_token)).status]).toEqual([200, 200])
      expect((await gateway.revoke(mine, access_token)).status).toBe(200)
      expect([await askThere(), (await gateway.call(access_token)).status]).toEqual([401, 401])
      const next = await gateway.refresh(mine, refresh_token)
      expect((await gateway.call(next.body.access_token)).status).toBe(200)
    },
  )

  test('writes a key that outlives the token [S34]', async () => {
    const { access_token } = await open()
    await gateway.revoke(client, access_token)
    const { exp = 0 } = decodeJwt(access_token)
    for (const key of await gateway.redis.direct.keys('pc:revoked:*'))
      expect(await gateway.redis.direct.ttl(key)).toBeGreaterThan(0)
    const { tokenIdHash } = await import('../../../src/access/token-id.ts')
    const hash = await tokenIdHash(PUBLIC_URL, String(decodeJwt(access_token).jti))
    const lives = await gateway.redis.direct.ttl(`pc:revoked:${hash}`)
    expect(lives).toBeGreaterThan(exp - Math.floor(Date.now() / 1000))
  })

  test('of an unknown, malformed, expired or foreign token succeeds', async () => {
    const { access_token, refresh_token } = await open()
    const now = Math.floor(Date.now() / 1000)
    await gateway.revoke(client, refresh_token)
    const tokens = [
      'x',
      crypto.randomUUID(),
      `${access_token}x`,
      refresh_token,
      `${'A'.repeat(22)}.${'A'.repeat(43)}`,
      await gateway.login(),
      await gateway.login({ claims: { iat: now - 600, exp: now - 60 } }),
    ]
    for (const token of tokens) {
      const { status, text } = await gateway.revoke(client, token)
      expect({ status, text }).toEqual({ status: 200, text: '' })
    }
  })

  test('is the same with every token_type_hint: none, unknown, right or wrong', async () => {
    for (const token_type_hint of ['access_token', 'refresh_token', 'unheard_of']) {
      const { access_token, refresh_token } = await open()
      await gateway.revoke(client, refresh_token, { token_type_hint })
      expect((await gateway.call(access_token)).status).toBe(401)
    }
  })

  test('of a token of another client is refused and has no effect', async () => {
    const first = await open()
    const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
    const second = await open(opaque)
    for (const { access_token, refresh_token } of [first, second]) {
      for (const token of [access_token, refresh_token]) {
        const { status, body } = await gateway.revoke(stranger, token)
        expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_grant' })
      }
      expect((await gateway.call(access_token)).status).toBe(200)
    }
    expect((await gateway.refresh(client, first.refresh_token)).status).toBe(200)
  })

  test('of an API key is refused as unsupported and has no effect', async () => {
    const key = await apiKey()
    const { status, body } = await gateway.revoke(client, key)
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'unsupported_token_type' })
    expect((await gateway.call(key)).status).toBe(200)
  })

  test('requires client authentication and a token', async () => {
    const { access_token, refresh_token } = await open()
    expect((await gateway.post('/oauth/revoke', { token: refresh_token })).status).toBe(401)
    expect((await gateway.revoke({ ...client, secret: 'x' }, refresh_token)).status).toBe(401)
    expect((await gateway.revoke(client, '')).body.error).toBe('invalid_request')
    expect((await gateway.call(access_token)).status).toBe(200)
  })
})

describe('introspection', () => {
  const INACTIVE = { active: false }

  test('reports the claims of a JWT', async () => {
    const login = { sub: 'alice', tenant: 'acme', scope: 'orders:read' }
    const { access_token, refresh_token } = await open(client, login)
    const claims = decodeJwt(access_token)
    const { status, body } = await gateway.introspect(client, access_token)
    expect(status).toBe(200)
    expect(body).toEqual({
      active: true,
      token_type: 'Bearer',
      iss: PUBLIC_URL,
      sub: 'alice',
      sub_iss: ISSUER,
      client_id: client.id,
      tenant: 'acme',
      roles: ['reader'],
      scope: 'orders:read',
      aud: PUBLIC_URL,
      jti: claims.jti,
      sid: claims.sid,
      iat: claims.iat,
      exp: claims.exp,
    })
    const session = await gateway.introspect(client, refresh_token)
    expect(session.body).toMatchObject({ active: true, sub: 'alice', sid: claims.sid })
    expect(session.body).not.toHaveProperty('token_type')
    expect((await gateway.refresh(client, refresh_token)).status).toBe(200)
  })

  test('reports the same for an opaque token, and the record of an API key', async () => {
    const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
    const { access_token } = await open(opaque, { sub: 'bob' })
    expect((await gateway.introspect(opaque, access_token)).body).toMatchObject({
      active: true,
      sub: 'bob',
      aud: PUBLIC_URL,
      client_id: opaque.id,
    })
    const { body } = await gateway.introspect(client, await apiKey())
    expect(body).toMatchObject({ active: true, sub: 'a machine', roles: ['reader'] })
    expect(body).not.toHaveProperty('exp')
  })

  test('reports to a resource the tokens of its audience', async () => {
    const issuing = await gateway.createClient({ audiences: [OTHER_API] })
    const { access_token } = await open(issuing)
    expect((await gateway.introspect(stranger, access_token)).body).toMatchObject({
      active: true,
      aud: OTHER_API,
    })
    expect((await gateway.introspect(client, access_token)).body).toEqual(INACTIVE)
    expect((await gateway.introspect(client, await gateway.login())).body.active).toBe(true)
    expect((await gateway.introspect(stranger, await gateway.login())).body).toEqual(INACTIVE)
  })

  test('reports no token to any other client', async () => {
    for (const tokenFormat of ['jwt', 'opaque'] as const) {
      const mine = await gateway.createClient({ tokenFormat })
      const { access_token, refresh_token } = await open(mine)
      for (const token of [access_token, refresh_token])
        expect((await gateway.introspect(stranger, token)).body).toEqual(INACTIVE)
      // A refresh token concerns only its own client, whatever its audience is.
      expect((await gateway.introspect(client, refresh_token)).body).toEqual(INACTIVE)
    }
  })

  test('reports only `active: false` for an invalid token', async () => {
    const introspectOwn = async () =>
      (await gateway.introspect(client, await gateway.sign({ sub: 'x' }, { typ: 'at+jwt' }))).body
    const revoked = await open()
    await gateway.revoke(client, revoked.refresh_token)
    const single = await open()
    await gateway.revoke(client, single.access_token)
    const cut = await open(client, { sub: 'cut off' })
    await gateway.revocations.revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: 'cut off',
      ttlSeconds: 600,
      atSeconds: Math.floor(Date.now() / 1000) + 1,
    })
    const tokens = [
      revoked.access_token,
      revoked.refresh_token,
      single.access_token,
      cut.access_token,
      cut.refresh_token,
      'x',
      crypto.randomUUID(),
      `pk_${'0'.repeat(49)}`,
      `${revoked.access_token}A`,
      await gateway.login({ claims: { aud: 'https://elsewhere.test' } }),
      await gateway.sign({ sub: 'x', aud: 'https://origin.test' }, { typ: 'origin-assertion+jwt' }),
      await gateway.sign({ sub: 'x' }, { typ: 'dpop+jwt' }),
      await gateway.sign({ sub: 'x' }, {}),
      await gateway.sign({ sub: 'x', exp: 1 }, { typ: 'at+jwt' }),
      await gateway.keep(crypto.randomUUID(), { expiresAtSeconds: 1 }),
      await gateway.keep(newApiKey()),
    ]
    expect((await introspectOwn()).active).toBe(true)
    for (const token of tokens) {
      const { status, body } = await gateway.introspect(client, token)
      expect({ status, body }).toEqual({ status: 200, body: INACTIVE })
    }
  })

  test('requires client authentication and a token', async () => {
    const { access_token } = await open()
    const { status } = await gateway.post('/oauth/introspect', { token: access_token })
    expect(status).toBe(401)
    expect((await gateway.introspect(client, '')).body.error).toBe('invalid_request')
  })
})
