import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER } from '../../harness/issuer.ts'
import { LANE } from '../../harness/lanes.ts'
import { PUBLIC_URL, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const OTHER_API = 'https://other-api.test'

let gateway: TestGateway
let client: TestClient
beforeAll(async () => {
  gateway = await startGateway()
  client = await gateway.createClient({ audiences: [PUBLIC_URL, OTHER_API] })
})
afterAll(() => gateway.close())

const open = async (claims: object = {}, params: Record<string, string | string[]> = {}) =>
  (await gateway.exchange(client, await gateway.login({ claims: { ...claims } }), params)).body

describe('a refresh', () => {
  test('returns the next pair of the same session', async () => {
    const first = await open({ sub: 'alice', scope: 'orders:read' })
    const { status, body } = await gateway.refresh(client, first.refresh_token)
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: expect.closeTo(900, -1),
      scope: 'orders:read',
    })
    expect(body.refresh_token).not.toBe(first.refresh_token)
    const [before, after] = [first, body].map(({ access_token }) => decodeJwt(access_token))
    for (const name of ['sub', 'sub_iss', 'sid', 'client_id', 'roles', 'scope', 'aud'])
      expect(after?.[name]).toEqual(before?.[name])
    expect(after?.jti).not.toBe(before?.jti)
    expect((await gateway.call(body.access_token)).status).toBe(200)
  })

  test('repeated within the grace period returns the same pair [S37]', async () => {
    const first = await open()
    const [one, two] = [
      await gateway.refresh(client, first.refresh_token),
      await gateway.refresh(client, first.refresh_token),
    ]
    expect(two.body.refresh_token).toBe(one.body.refresh_token)
    const [a, b] = [one, two].map(({ body }) => decodeJwt(body.access_token))
    expect([b?.jti, b?.iat]).toEqual([a?.jti, a?.iat])
  })

  test('sent 20 times at once returns one and the same successor [S35]', async () => {
    const { refresh_token } = await open()
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => gateway.refresh(client, refresh_token)),
    )
    const successors = new Set(replies.map(({ body }) => body.refresh_token))
    expect(successors.size).toBe(1)
  })

  test('with a token older than the previous one ends the session for the thief and the owner [S36]', async () => {
    const first = await open()
    const second = (await gateway.refresh(client, first.refresh_token)).body
    const third = (await gateway.refresh(client, second.refresh_token)).body
    expect((await gateway.call(third.access_token)).status).toBe(200)
    expect((await gateway.refresh(client, first.refresh_token)).body.error).toBe('invalid_grant')
    expect((await gateway.refresh(client, third.refresh_token)).body.error).toBe('invalid_grant')
    for (const { access_token } of [first, second, third])
      expect((await gateway.call(access_token)).status).toBe(401)
  })

  test('of an opaque session returns the same token when it is retried, and another one next time', async () => {
    const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
    const first = (await gateway.exchange(opaque, await gateway.login())).body
    const [one, retry] = [
      (await gateway.refresh(opaque, first.refresh_token)).body,
      (await gateway.refresh(opaque, first.refresh_token)).body,
    ]
    expect(retry.access_token).toBe(one.access_token)
    const next = (await gateway.refresh(opaque, one.refresh_token)).body
    expect(next.access_token).not.toBe(one.access_token)
    for (const { access_token } of [first, one, next])
      expect((await gateway.call(access_token)).status).toBe(200)
  })

  test('that is retried does not restore a revoked opaque token', async () => {
    const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
    const first = (await gateway.exchange(opaque, await gateway.login())).body
    const { access_token } = (await gateway.refresh(opaque, first.refresh_token)).body
    await gateway.revoke(opaque, access_token)
    const retry = (await gateway.refresh(opaque, first.refresh_token)).body
    expect(retry.access_token).toBe(access_token)
    expect((await gateway.call(access_token)).status).toBe(401)
    const keys = await gateway.redis.direct.keys('pc:revoked:*')
    const lives = await Promise.all(keys.map((key) => gateway.redis.direct.ttl(key)))
    // Longer than the record that the retry wrote again.
    expect(Math.max(...lives)).toBeGreaterThan(900)
  })
})

describe('a refresh that fails consumes no refresh token [S38]', () => {
  test.each([
    ['another client', 'invalid_grant', {}, true],
    ['a wider scope', 'invalid_scope', { scope: 'orders:read orders:delete' }, false],
    ['a scope without permissions', 'invalid_scope', { scope: 'openid' }, false],
    ['a malformed scope', 'invalid_scope', { scope: '"' }, false],
    ['another resource', 'invalid_target', { resource: OTHER_API }, false],
    ['an unknown resource', 'invalid_target', { resource: 'https://elsewhere.test' }, false],
  ] as const)('%s: %s', async (_, error, params, byStranger) => {
    const first = await open({ scope: 'orders:read openid' })
    const stranger = await gateway.createClient({ audiences: [PUBLIC_URL, OTHER_API] })
    for (let count = 0; count < 2; count++) {
      const sender = byStranger ? stranger : client
      const { status, body } = await gateway.refresh(sender, first.refresh_token, params)
      expect({ status, error: body.error }).toEqual({ status: 400, error })
    }
    const second = (await gateway.refresh(client, first.refresh_token)).body
    const third = await gateway.refresh(client, second.refresh_token)
    expect(third.status).toBe(200)
    // If a failure had consumed the first token, this would be a reuse.
    expect(third.body.refresh_token).not.toBe(second.refresh_token)
  })

  test('a missing key for the algorithm of the client', async () => {
    const bare = await startGateway({ algorithms: ['ES256'] })
    try {
      const mine = await bare.createClient()
      const first = (await bare.exchange(mine, await bare.login())).body
      const key = `pc:client:${mine.id}`
      const record = JSON.parse((await bare.redis.direct.get(key)) ?? '')
      const wanting = { ...record, tokenAlgorithm: 'RS256' }
      await bare.redis.direct.set(key, JSON.stringify(wanting))
      for (let count = 0; count < 2; count++) {
        const { status, body } = await bare.refresh(mine, first.refresh_token)
        expect({ status, error: body.error }).toEqual({
          status: 503,
          error: 'temporarily_unavailable',
        })
      }
      const family = (await bare.redis.direct.keys('pc:*refresh:*'))[0] ?? ''
      expect(await bare.redis.direct.hget(family, 'previous')).toBeFalsy()
      await bare.redis.direct.set(key, JSON.stringify(record))
      expect((await bare.refresh(mine, first.refresh_token)).status).toBe(200)
      expect(await bare.redis.direct.hget(family, 'previous')).toBeTruthy()
    } finally {
      await bare.close()
    }
  })

  test('a wrong secret', async () => {
    const first = await open()
    const wrong = { ...client, secret: 'x' }
    expect((await gateway.refresh(wrong, first.refresh_token)).status).toBe(401)
    expect((await gateway.refresh(client, first.refresh_token)).status).toBe(200)
  })

  test('a client that may no longer refresh and a request without a token are refused', async () => {
    const grants = ['urn:ietf:params:oauth:grant-type:token-exchange'] as const
    const other = await gateway.createClient({ grants: [...grants] })
    const { refresh_token } = await open()
    expect((await gateway.refresh(other, refresh_token)).body.error).toBe('unauthorized_client')
    expect((await gateway.refresh(client, '')).body.error).toBe('invalid_request')
    for (const malformed of [
      'x',
      'x.y',
      crypto.randomUUID(),
      refresh_token.slice(1),
      `${refresh_token}A`,
    ])
      expect((await gateway.refresh(client, malformed)).body.error).toBe('invalid_grant')
  })
})

describe('the parameters of a refresh', () => {
  test('may request less scope, and the full scope next time', async () => {
    const first = await open({ roles: ['clerk'], scope: 'orders:read orders:write' })
    const less = await gateway.refresh(client, first.refresh_token, { scope: 'orders:read' })
    expect(less.body.scope).toBe('orders:read')
    const all = await gateway.refresh(client, less.body.refresh_token)
    expect(all.body.scope).toBe('orders:read orders:write')
  })

  test('may request one of several resources, and default to all of them', async () => {
    const first = await open({}, { resource: [PUBLIC_URL, OTHER_API] })
    const params = { resource: OTHER_API }
    const one = await gateway.refresh(client, first.refresh_token, params)
    expect(decodeJwt(one.body.access_token).aud).toBe(OTHER_API)
    const all = await gateway.refresh(client, one.body.refresh_token)
    expect(decodeJwt(all.body.access_token).aud).toEqual([PUBLIC_URL, OTHER_API])
  })

  test('may not request a scope if the session has none', async () => {
    const first = await open()
    const reply = await gateway.refresh(client, first.refresh_token, { scope: 'orders:read' })
    expect(reply.body.error).toBe('invalid_scope')
  })
})

describe('a cutoff ends a session with all its tokens [S33]', () => {
  test.each([
    ['session', PUBLIC_URL],
    ['client', PUBLIC_URL],
    ['tenant', ISSUER],
    ['tenant', PUBLIC_URL],
    ['subject', ISSUER],
    ['subject', PUBLIC_URL],
  ] as const)('of a %s of %s', async (kind, issuer) => {
    const mine = await gateway.createClient()
    const claims = { sub: crypto.randomUUID(), tenant: crypto.randomUUID() }
    const first = (await gateway.exchange(mine, await gateway.login({ claims }))).body
    const { iat = 0, sid } = decodeJwt(first.access_token)
    const values = {
      session: String(sid),
      client: mine.id,
      tenant: claims.tenant,
      subject: claims.sub,
    }
    const revokeBefore = { kind, issuer, value: values[kind] }
    await gateway.revocations.revokeBefore({ ...revokeBefore, atSeconds: iat, ttlSeconds: 600 })
    expect((await gateway.call(first.access_token)).status).toBe(401)
    expect((await gateway.refresh(mine, first.refresh_token)).body.error).toBe('invalid_grant')
    expect((await gateway.introspect(mine, first.refresh_token)).body).toEqual({ active: false })
    // After the removal of the cutoff, the tokens work again: the refusals consumed nothing.
    await gateway.revocations.liftRevokedBefore(revokeBefore)
    expect((await gateway.refresh(mine, first.refresh_token)).status).toBe(200)
  })
})

test('a dump of Redis contains no token of a session and no secret [S40]', async () => {
  const opaque = await gateway.createClient({ tokenFormat: 'opaque' })
  const first = (await gateway.exchange(opaque, await gateway.login())).body
  const second = (await gateway.refresh(opaque, first.refresh_token)).body
  const dump: string[] = []
  for (const key of await gateway.redis.direct.keys('*')) {
    const type = await gateway.redis.direct.type(key)
    dump.push(key)
    if (type === 'string') dump.push((await gateway.redis.direct.get(key)) ?? '')
    if (type === 'hash') dump.push(JSON.stringify(await gateway.redis.direct.hgetall(key)))
  }
  const text = dump.join('\n')
  expect(text).toContain('refresh:')
  expect(text).toMatch(new RegExp(`${LANE}reference:`))
  for (const { access_token, refresh_token } of [first, second]) {
    expect(text).not.toContain(access_token)
    for (const part of refresh_token.split('.')) expect(text).not.toContain(part)
  }
  for (const { secret } of [opaque, client]) expect(text).not.toContain(secret)
})
