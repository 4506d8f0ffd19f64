import { createHash } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  PUBLIC_URL,
  type Reply,
  startGateway,
  type TestClient,
  type TestGateway,
} from './gateway.ts'

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const GRANT = { grant_type: 'client_credentials' }
const CONFIGURED = {
  id: '018f0000-0000-7000-8000-00000000c11e',
  secret: 'p%a:s s+wörd of the test',
}

let gateway: TestGateway
let client: TestClient
beforeAll(async () => {
  const secretSha256 = createHash('sha256').update(CONFIGURED.secret).digest('base64url')
  gateway = await startGateway({
    clients: [{ id: CONFIGURED.id, grants: ['client_credentials'], secretSha256 }],
  })
  client = await gateway.createClient()
})
afterAll(() => gateway.close())
beforeEach(() => gateway.forgetFailures())

const formEncoded = (text: string) => new URLSearchParams({ x: text }).toString().slice(2)
const basic = (id: string, secret: string) =>
  `Basic ${btoa(`${formEncoded(id)}:${formEncoded(secret)}`)}`
const withBasic = (authorization: string, params: Record<string, string> = GRANT) =>
  gateway.post('/oauth/token', params, { headers: { Authorization: authorization } })

/** Returns the parts of a response that a client can observe, except its time. */
const seen = ({ status, headers, text }: Reply) => {
  const visible = Object.fromEntries(headers)
  delete visible['x-request-id']
  return { status, text, headers: visible }
}

describe('client authentication with a secret', () => {
  test('Basic with form-encoded parts is accepted, in any letter case of the scheme [S42]', async () => {
    expect((await withBasic(basic(client.id, client.secret))).status).toBe(200)
    const encoded = basic(CONFIGURED.id, CONFIGURED.secret)
    expect((await withBasic(encoded)).status).toBe(200)
    expect((await withBasic(encoded.replace('Basic', 'bAsIC'))).status).toBe(200)
    // Without the encoding, `%a:` in the id would mean something else.
    const raw = `Basic ${Buffer.from(`${CONFIGURED.id}:${CONFIGURED.secret}`).toString('base64')}`
    expect((await withBasic(raw)).status).toBe(401)
  })

  test('an id and a secret in the form are accepted [S42]', async () => {
    expect((await gateway.token(client, GRANT)).status).toBe(200)
    expect((await gateway.token(CONFIGURED, GRANT)).status).toBe(200)
  })

  test('a client_id in the form beside Basic must be the same client [S42]', async () => {
    const header = basic(client.id, client.secret)
    expect((await withBasic(header, { ...GRANT, client_id: client.id })).status).toBe(200)
    const other = await withBasic(header, { ...GRANT, client_id: CONFIGURED.id })
    expect(other).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test.each([
    ['Basic and a secret in the form', { client_id: 'c', client_secret: 's' }],
    ['Basic and an assertion', { client_assertion: 'a', client_assertion_type: JWT_BEARER }],
  ])('%s together are refused [S42]', async (_, params) => {
    const header = basic(client.id, client.secret)
    const { status, body } = await withBasic(header, { ...GRANT, ...params })
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' })
  })

  test('a secret and an assertion together are refused [S42]', async () => {
    const params = { ...GRANT, client_assertion: 'a', client_assertion_type: JWT_BEARER }
    expect((await gateway.token(client, params)).body.error).toBe('invalid_request')
  })

  test.each([
    'Basic',
    'Basic ',
    'Basic !',
    'Basic YQ',
    'Basic Og==',
    `Basic ${btoa('id:')}`,
    `Basic ${btoa(':secret')}`,
    `Basic ${btoa('no colon')}`,
    `Basic ${btoa('%:%')}`,
    `Basic ${btoa('id:\u0000')}`,
    'Bearer abc',
    'x',
  ])('Authorization: %j is refused with a challenge [S42]', async (header) => {
    const { status, headers, body } = await withBasic(header)
    expect({ status, error: body.error }).toEqual({ status: 401, error: 'invalid_client' })
    expect(headers.get('www-authenticate')).toMatch(/^Basic realm="/)
  })

  test.each([
    ['no credentials', {}],
    ['only an id', { client_id: 'x' }],
    ['an empty secret', { client_id: 'x', client_secret: '' }],
    ['only a secret', { client_secret: 'x' }],
  ])('a request with %s gets invalid_client [S42]', async (_, params) => {
    const { status, body } = await gateway.post('/oauth/token', { ...GRANT, ...params })
    expect({ status, error: body.error }).toEqual({ status: 401, error: 'invalid_client' })
  })

  test('an unknown client, a disabled client, a wrong secret and a client without a secret get the same response [S45]', async () => {
    const disabled = await gateway.createClient()
    await gateway.registry.disable(disabled.id)
    const { publicKey } = await generateKeyPair('ES256')
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k' }] } as never
    const keyed = await gateway.createClient({ jwks })
    const attempts = [
      { id: client.id, secret: `${client.secret}x` },
      { id: crypto.randomUUID(), secret: client.secret },
      { id: 'not-a-uuid', secret: client.secret },
      disabled,
      { id: keyed.id, secret: 'x' },
      { id: CONFIGURED.id, secret: 'x' },
      { id: client.id.toUpperCase(), secret: client.secret },
    ]
    const before = gateway.redis.calls()
    const replies: Reply[] = []
    const calls: number[] = []
    for (const attempt of attempts) {
      const start = gateway.redis.calls()
      replies.push(await gateway.token(attempt, GRANT))
      calls.push(gateway.redis.calls() - start)
    }
    expect(gateway.redis.calls()).toBeGreaterThan(before)
    expect(new Set(calls)).toEqual(new Set([2]))
    const [first, ...others] = replies.map(seen)
    expect(first?.status).toBe(401)
    for (const other of others) expect(other).toEqual(first)
  })

  test('a disabled client is refused, with its refresh tokens as well', async () => {
    const mine = await gateway.createClient()
    const { body } = await gateway.exchange(mine, await gateway.login())
    await gateway.registry.disable(mine.id)
    expect((await gateway.refresh(mine, body.refresh_token)).status).toBe(401)
    expect((await gateway.token(mine, GRANT)).status).toBe(401)
  })
})

describe('client authentication with private_key_jwt', () => {
  let id: string
  let sign: (claims?: object, header?: object) => Promise<string>
  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const [rsa, other] = [await generateKeyPair('RS256'), await generateKeyPair('ES256')]
    const jwks = {
      keys: [
        { ...(await exportJWK(publicKey)), kid: 'k1' },
        { ...(await exportJWK(rsa.publicKey)), kid: 'k2', alg: 'RS256' },
        { ...(await exportJWK(other.publicKey)), kid: 'k3' },
      ],
    } as never
    id = (await gateway.createClient({ jwks })).id
    sign = (claims = {}, header = {}) => {
      const now = Math.floor(Date.now() / 1000)
      const times = { iat: now, exp: now + 60 }
      return new SignJWT({
        iss: id,
        sub: id,
        aud: PUBLIC_URL,
        jti: crypto.randomUUID(),
        ...times,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', kid: 'k1', ...header })
        .sign(privateKey)
    }
  })

  const assert = (assertion: string, params: Record<string, string> = {}) =>
    gateway.post('/oauth/token', {
      ...GRANT,
      client_assertion: assertion,
      client_assertion_type: JWT_BEARER,
      ...params,
    })

  test('an assertion for the issuer or for the token endpoint is accepted once', async () => {
    const assertion = await sign()
    expect((await assert(assertion)).status).toBe(200)
    expect((await assert(assertion)).body.error).toBe('invalid_client')
    expect((await assert(await sign({ aud: `${PUBLIC_URL}/oauth/token` }))).status).toBe(200)
    expect((await assert(await sign({ aud: [PUBLIC_URL] }))).status).toBe(200)
    expect((await assert(await sign(), { client_id: id })).status).toBe(200)
  })

  test('an assertion may name the server by its issuer and an endpoint, or by the called endpoint', async () => {
    const both = [PUBLIC_URL, `${PUBLIC_URL}/oauth/token`]
    expect((await assert(await sign({ aud: both }))).status).toBe(200)
    expect((await assert(await sign({ aud: both.toReversed() }))).status).toBe(200)
    expect((await assert(await sign({ aud: [] }))).status).toBe(401)
    for (const path of ['/oauth/revoke', '/oauth/introspect']) {
      const reply = await gateway.post(path, {
        token: 'unknown',
        client_assertion: await sign({ aud: PUBLIC_URL + path }),
        client_assertion_type: JWT_BEARER,
      })
      expect([path, reply.status]).toEqual([path, 200])
    }
    for (const path of ['/oauth/revoke', '/oauth/introspect', '/oauth/par', '/oauth/token/'])
      expect([path, (await assert(await sign({ aud: PUBLIC_URL + path }))).status]).toEqual([
        path,
        401,
      ])
  })

  test.each(['Ed25519', 'EdDSA'] as const)(
    'a key of %s refuses an assertion under the other name of the algorithm',
    async (alg) => {
      const { publicKey, privateKey } = await generateKeyPair(alg)
      const jwks = { keys: [{ ...(await exportJWK(publicKey)), alg }] } as never
      const { id: app } = await gateway.createClient({ jwks })
      const signed = (name: string) =>
        new SignJWT({ jti: crypto.randomUUID() })
          .setProtectedHeader({ alg: name })
          .setIssuer(app)
          .setSubject(app)
          .setAudience(PUBLIC_URL)
          .setExpirationTime('60s')
          .sign(privateKey)
      expect((await assert(await signed(alg))).status).toBe(200)
      const other = alg === 'EdDSA' ? 'Ed25519' : 'EdDSA'
      expect((await assert(await signed(other))).body.error).toBe('invalid_client')
    },
  )

  test.each([
    ['another audience', { aud: 'https://other.test' }],
    ['two audiences', { aud: [PUBLIC_URL, 'https://other.test'] }],
    ['no audience', { aud: undefined }],
    ['another issuer', { iss: 'other' }],
    ['no issuer', { iss: undefined }],
    ['no expiry', { exp: undefined }],
    ['an expiry long ago', { exp: Math.floor(Date.now() / 1000) - 60 }],
    ['a lifetime of more than an hour', { exp: Math.floor(Date.now() / 1000) + 4_000 }],
    [
      'a lifetime of more than an hour that is nearly over',
      { iat: Math.floor(Date.now() / 1000) - 3_500, exp: Math.floor(Date.now() / 1000) + 110 },
    ],
    ['a distant expiry and no iat', { iat: undefined, exp: Math.floor(Date.now() / 1000) + 600 }],
    ['an expiry in ten years', { exp: Math.floor(Date.now() / 1000) + 315_360_000 }],
    ['nbf in the future', { nbf: Math.floor(Date.now() / 1000) + 60 }],
    ['iat in the future', { iat: Math.floor(Date.now() / 1000) + 60 }],
    ['no jti', { jti: undefined }],
    ['an invalid jti', { jti: 1 }],
  ])('an assertion with %s is refused', async (_, claims) => {
    const { status, body } = await assert(await sign(claims))
    expect({ status, error: body.error }).toEqual({ status: 401, error: 'invalid_client' })
  })

  test.each([3_600, 300])(
    'an assertion that is valid for %i seconds is accepted once',
    async (seconds) => {
      const iat = Math.floor(Date.now() / 1000)
      const jti = crypto.randomUUID()
      const assertion = await sign({ iat, exp: iat + seconds, jti })
      const before = new Set(await gateway.redis.direct.keys('pc:client-assertion:*'))
      expect((await assert(assertion)).status).toBe(200)
      expect((await assert(assertion)).body.error).toBe('invalid_client')
      expect(gateway.events.at(-1)?.reason).toBe('invalid_client:private_key_jwt_replay')
      // The same `jti` in another assertion is a replay as well.
      expect((await assert(await sign({ jti }))).status).toBe(401)
      const [key = ''] = (await gateway.redis.direct.keys('pc:client-assertion:*')).filter(
        (name) => !before.has(name),
      )
      // The record outlives the acceptance of the assertion on every gateway, so no replay succeeds: 5 s
      // after its end, by a clock that is 15 s behind.
      expect(await gateway.redis.direct.expiretime(key)).toBeGreaterThanOrEqual(iat + seconds + 20)
    },
  )

  test('only the audit trail names the check that an assertion failed', async () => {
    const now = Math.floor(Date.now() / 1000)
    const answers = new Set<string>()
    for (const [check, claims, header] of [
      ['lifetime', { exp: now + 7_200 }, {}],
      ['expired', { iat: now - 600, exp: now - 300 }, {}],
      ['future', { nbf: now + 60 }, {}],
      ['audience', { aud: 'https://other.test' }, {}],
      ['issuer', { iss: 'other' }, {}],
      ['claims', { jti: undefined }, {}],
      ['key', {}, { kid: 'k9' }],
      ['type', {}, { typ: 'at+jwt' }],
      ['key', { iss: client.id, sub: client.id }, {}],
    ] as const) {
      const reply = await assert(await sign(claims, header))
      expect(reply.status).toBe(401)
      expect(gateway.events.at(-1)?.reason).toBe(`invalid_client:private_key_jwt_${check}`)
      answers.add(reply.text)
    }
    expect((await assert(`${await sign()}=`)).status).toBe(401)
    expect(answers.size).toBe(1)
  })

  test('a token of another type is refused as an assertion', async () => {
    for (const typ of ['at+jwt', 'dpop+jwt', 'origin-assertion+jwt'])
      expect((await assert(await sign({}, { typ }))).status, typ).toBe(401)
    expect((await assert(await sign({}, { typ: 'JWT' }))).status).toBe(200)
  })

  test('an assertion signed with another key, with a shared secret or not at all is refused', async () => {
    const { privateKey } = await generateKeyPair('ES256')
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: id, sub: id, aud: PUBLIC_URL, exp: now + 60, jti: 'x' }
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .sign(privateKey)
    const hmac = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
      .sign(new Uint8Array(32))
    const [, payload] = forged.split('.')
    const none = `${btoa('{"alg":"none"}').replaceAll('=', '')}.${payload}.`
    for (const assertion of [forged, hmac, none, 'x', `${await sign()}=`])
      expect((await assert(assertion)).body.error).toBe('invalid_client')
  })

  test('every assertion costs one signature verification, whether its key is known or not [S42]', async () => {
    const claims = { sub: crypto.randomUUID() }
    const tried = {
      'of an unknown client': await sign({ ...claims, iss: claims.sub }),
      'with an unknown key': await sign({}, { kid: 'k9' }),
      'with a key for another purpose': await sign({}, { kid: 'k2' }),
      'with two keys and no kid': await sign({}, { kid: undefined }),
      'with the right key and a wrong signature': `${(await sign()).split('.').slice(0, 2).join('.')}.${'A'.repeat(86)}`,
    }
    // The first assertion creates the key for the verification of unknown clients.
    await assert(tried['of an unknown client'])
    const verify = vi.spyOn(crypto.subtle, 'verify')
    try {
      for (const [what, assertion] of Object.entries(tried)) {
        verify.mockClear()
        expect((await assert(assertion)).status, what).toBe(401)
        expect(verify, what).toHaveBeenCalledTimes(1)
      }
    } finally {
      verify.mockRestore()
    }
  })

  test('an assertion for another client and one of a client without keys are refused', async () => {
    const sub = { iss: client.id, sub: client.id }
    expect((await assert(await sign(sub))).status).toBe(401)
    expect((await assert(await sign(), { client_id: client.id })).status).toBe(400)
    expect((await assert(await sign(), { client_assertion_type: 'x' })).status).toBe(401)
  })

  test('a disabled client is refused', async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k' }] } as never
    const mine = await gateway.createClient({ jwks })
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: mine.id, sub: mine.id, aud: PUBLIC_URL, exp: now + 60 }
    const one = () =>
      new SignJWT({ ...claims, jti: crypto.randomUUID() })
        .setProtectedHeader({ alg: 'ES256', kid: 'k' })
        .sign(privateKey)
    expect((await assert(await one())).status).toBe(200)
    await gateway.registry.disable(mine.id)
    expect((await assert(await one())).status).toBe(401)
  })

  test('of ten simultaneous uses of one assertion, exactly one succeeds', async () => {
    const assertion = await sign()
    const replies = await Promise.all(Array.from({ length: 10 }, () => assert(assertion)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

describe('throttling of failed authentication', () => {
  const attempt = (id: string, secret: string, address: string) =>
    gateway.token({ id, secret }, GRANT, { address })
  const codes = (replies: readonly Reply[]) => {
    const count = (status: number) => replies.filter((reply) => reply.status === status).length
    return { 200: count(200), 401: count(401), 429: count(429) }
  }

  test('an address may fail 20 times a minute, at once or in sequence, over all client ids [S44]', async () => {
    const address = gateway.newAddress()
    const replies = await Promise.all(
      Array.from({ length: 30 }, () => attempt(crypto.randomUUID(), 'x', address)),
    )
    const counts = codes(replies)
    expect(counts).toMatchObject({ 200: 0 })
    // Fewer get 401 if a failure was counted and its response arrived too late.
    expect(counts[401]).toBeLessThanOrEqual(20)
    expect(counts[429]).toBeGreaterThanOrEqual(10)
    const refused = await attempt(client.id, client.secret, address)
    expect(refused).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect((await attempt(client.id, client.secret, gateway.newAddress())).status).toBe(200)
  })

  test('a client that fails behind an address does not block clients that succeeded there before [S44]', async () => {
    const [mine, neighbor, stranger] = [
      await gateway.createClient(),
      await gateway.createClient(),
      await gateway.createClient(),
    ]
    const address = gateway.newAddress()
    expect((await attempt(mine.id, mine.secret, address)).status).toBe(200)
    const misconfigured = () => attempt(neighbor.id, 'x', address)
    const first = await Promise.all(Array.from({ length: 30 }, misconfigured))
    expect(codes(first)).toMatchObject({ 200: 0 })
    expect(codes(first)[429]).toBeGreaterThanOrEqual(10)
    expect((await attempt(mine.id, mine.secret, address)).status).toBe(200)
    // A client that never succeeded at this address gets 429 even with the right secret.
    expect((await attempt(stranger.id, stranger.secret, address)).status).toBe(429)
    expect((await attempt(neighbor.id, neighbor.secret, address)).status).toBe(429)
  })

  test('an address may fail 100 times a minute for a client that succeeded there, at once or in sequence [S44]', async () => {
    const mine = await gateway.createClient()
    const address = gateway.newAddress()
    expect((await attempt(mine.id, mine.secret, address)).status).toBe(200)
    const replies: Reply[] = []
    for (let count = 0; count < 125; count += 25) {
      const batch = Array.from({ length: 25 }, () => attempt(mine.id, 'x', address))
      replies.push(...(await Promise.all(batch)))
    }
    const counts = codes(replies)
    expect(counts).toMatchObject({ 200: 0 })
    expect(counts[401]).toBeGreaterThan(20)
    expect(counts[401]).toBeLessThanOrEqual(100)
    expect(counts[429]).toBeGreaterThanOrEqual(25)
    expect((await attempt(mine.id, mine.secret, address)).status).toBe(429)
  })

  test('failures for one client from 150 addresses do not lock it out where it succeeded before [S44]', async () => {
    const mine = await gateway.createClient()
    const home = gateway.newAddress()
    expect((await attempt(mine.id, mine.secret, home)).status).toBe(200)
    const replies: Reply[] = []
    for (let count = 0; count < 150; count += 25) {
      const batch = Array.from({ length: 25 }, () => attempt(mine.id, 'x', gateway.newAddress()))
      replies.push(...(await Promise.all(batch)))
    }
    const counts = codes(replies)
    expect(counts).toMatchObject({ 200: 0 })
    expect(counts[401]).toBeLessThanOrEqual(100)
    expect(counts[429]).toBeGreaterThanOrEqual(50)
    expect((await attempt(mine.id, mine.secret, home)).status).toBe(200)
    // At a new address, the client gets 429 even with the right secret.
    expect((await attempt(mine.id, mine.secret, gateway.newAddress())).status).toBe(429)
    expect((await attempt(client.id, client.secret, gateway.newAddress())).status).toBe(200)
  })

  test('every key of a failure and of a known address expires [S34]', async () => {
    await attempt(client.id, 'x', gateway.newAddress())
    for (const key of await gateway.redis.direct.keys('pc:client-*'))
      expect(await gateway.redis.direct.ttl(key), key).toBeGreaterThan(0)
  })

  test('a banned address is refused before the secret is verified', async () => {
    const address = gateway.newAddress()
    const until = Math.floor(Date.now() / 1000) + 60
    await gateway.redis.direct.set(`pc:ban:address:${address}`, until, 'EX', 60)
    const { status, body, headers } = await attempt(client.id, client.secret, address)
    expect({ status, error: body.error }).toEqual({ status: 403, error: 'access_denied' })
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  })
})
