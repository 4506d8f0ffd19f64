/** Attacks on the authorization code flow (RFC 9700). Each shows that nothing was issued. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER } from '../../harness/issuer.ts'
import {
  type CodeGateway,
  challengeOf,
  MCP,
  newVerifier,
  PUBLIC_URL,
  REDIRECT_URI,
  startCodeGateway,
} from './code-gateway.ts'

let gateway: CodeGateway
let id: string
beforeAll(async () => {
  gateway = await startCodeGateway()
  id = await gateway.createClient()
})
afterAll(() => gateway.close())

const issuingNothing: CodeGateway['issuingNothing'] = (attack, presented) =>
  gateway.issuingNothing(attack, presented)

/** Returns a code that a user has allowed, and what its client needs to redeem it. */
async function allowed(more: Record<string, string> = {}, clientId = id) {
  const verifier = newVerifier()
  const request = gateway.requestOf(clientId, verifier, more)
  const code = await gateway.codeFor(request, gateway.signIn())
  return { code, verifier, clientId }
}

async function refused(accessToken: string, path?: string) {
  const before = gateway.originCalls()
  const { status } = await gateway.call(accessToken, path)
  expect(gateway.originCalls()).toBe(before)
  return status
}

describe('code replay [S77]', () => {
  test('a code is valid once; a second use ends the session and its tokens', async () => {
    const { code, verifier } = await allowed()
    const first = await gateway.redeem(id, code, verifier)
    expect((await gateway.call(first.body.access_token)).status).toBe(200)
    const second = await gateway.redeem(id, code, verifier)
    expect(second).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(gateway.events.at(-1)?.reason).toBe('invalid_grant:code_replayed')
    expect(await refused(first.body.access_token)).toBe(401)
    const refreshed = await gateway.refresh(id, first.body.refresh_token)
    expect(refreshed).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('a replay without the verifier ends the session as well', async () => {
    const { code, verifier } = await allowed()
    const first = await gateway.redeem(id, code, verifier)
    await gateway.redeem(id, code, newVerifier())
    expect(await refused(first.body.access_token)).toBe(401)
  })

  test('of concurrent uses one succeeds, and the others end its session', async () => {
    const { code, verifier } = await allowed()
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => gateway.redeem(id, code, verifier)),
    )
    const [won, ...more] = replies.filter(({ status }) => status === 200)
    expect(more).toEqual([])
    expect(await refused(won?.body.access_token)).toBe(401)
    expect((await gateway.refresh(id, won?.body.refresh_token)).status).toBe(400)
  })

  test('a code expires after 60 seconds, and is stored only as a hash', async () => {
    const { code } = await allowed()
    const hash = createHash('sha256').update(code).digest('base64url')
    const [key = ''] = await gateway.redis.direct.keys(`pc:*code:${hash}`)
    const ttl = await gateway.redis.direct.ttl(key)
    expect(ttl).toBeGreaterThan(50)
    expect(ttl).toBeLessThanOrEqual(60)
    const keys = await gateway.redis.direct.keys('*')
    expect(keys.filter((key) => key.includes(code))).toEqual([])
  })
})

describe('code injection [S77]', () => {
  test.each([
    ['another verifier', { code_verifier: newVerifier() }],
    ['no verifier', { code_verifier: undefined }],
    ['the challenge as verifier', {}],
    ['another redirect URI', { redirect_uri: `${REDIRECT_URI}/` }],
    ['no redirect URI', { redirect_uri: undefined }],
  ])('a code with %s is refused, and stays valid for its client', async (name, more) => {
    const { code, verifier } = await allowed()
    const changed = name.startsWith('the challenge')
      ? { code_verifier: challengeOf(verifier) }
      : more
    const reply = await issuingNothing(() => gateway.redeem(id, code, verifier, changed))
    expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect((await gateway.redeem(id, code, verifier)).status).toBe(200)
  })

  test('a code of another client is refused, and stays valid for its client', async () => {
    const { code, verifier } = await allowed()
    const other = await gateway.createClient()
    const reply = await issuingNothing(() => gateway.redeem(other, code, verifier))
    expect(reply.body.error).toBe('invalid_grant')
    expect(gateway.events.findLast(({ route }) => route === '/oauth/token')?.reason).toBe(
      'invalid_grant:code_of_another_client',
    )
    expect((await gateway.redeem(id, code, verifier)).status).toBe(200)
  })

  test('a code for one resource gives no token for another', async () => {
    const { code, verifier } = await allowed()
    const orders = { resource: `${PUBLIC_URL}/orders` }
    const reply = await issuingNothing(() => gateway.redeem(id, code, verifier, orders))
    expect(reply.body.error).toBe('invalid_target')
  })

  test.each(['x', '', 'A'.repeat(43), `${'A'.repeat(42)}B`, '%00'.repeat(20)])(
    'the text %j is no code',
    async (code) => {
      const reply = await issuingNothing(() => gateway.redeem(id, code, newVerifier()))
      expect(reply.status).toBe(400)
    },
  )

  test('a code that is bound to a key needs a proof by that key', async () => {
    const { code, verifier } = await allowed({ dpop_jkt: challengeOf('key') })
    const reply = await issuingNothing(() => gateway.redeem(id, code, verifier))
    expect(reply.body.error).toBe('invalid_dpop_proof')
  })
})

describe('PKCE downgrade [S77]', () => {
  test.each([
    ['no challenge', { code_challenge: undefined, code_challenge_method: undefined }],
    ['no method', { code_challenge_method: undefined }],
    ['the method plain', { code_challenge_method: 'plain' }],
    ['a challenge that is no SHA-256', { code_challenge: 'short' }],
  ])('a request with %s gets no code', async (_, more) => {
    const request = gateway.requestOf(id, newVerifier(), more)
    const reply = await issuingNothing(() => gateway.authorize(request, gateway.signIn()))
    expect(reply.location?.startsWith(REDIRECT_URI)).toBe(true)
    expect(reply.answer.get('error')).toBe('invalid_request')
    expect(reply.answer.get('iss')).toBe(PUBLIC_URL)
    expect(reply.answer.get('code')).toBeNull()
  })
})

describe('redirect confusion [S77]', () => {
  test.each([
    'https://evil.example.com/callback',
    'https://app.example.com/callback/',
    'https://app.example.com/callback?x=1',
    'https://app.example.com/callback#fragment',
    'https://app.example.com/callback/../evil',
    'https://app.example.com/Callback',
    'https://APP.example.com/callback',
    'https://app.example.com:443/callback',
    'https://app.example.com.evil.test/callback',
    'https://app.example.com@evil.test/callback',
    'http://app.example.com/callback',
    'https://app.example.com/callback%2f..',
    'https://app.example.com\\@evil.test/callback',
    '//app.example.com/callback',
    'javascript:alert(1)',
  ])('redirect_uri %j gets a page and no redirect', async (redirectUri) => {
    const request = gateway.requestOf(id, newVerifier(), { redirect_uri: redirectUri })
    const reply = await issuingNothing(() => gateway.authorize(request, gateway.signIn()))
    expect({ status: reply.status, location: reply.location }).toEqual({
      status: 400,
      location: null,
    })
    expect(reply.headers.get('content-type')).toContain('text/html')
  })

  test('a client with one redirect URI need not name it, for the code either', async () => {
    const verifier = newVerifier()
    const request = gateway.requestOf(id, verifier, { redirect_uri: undefined })
    const redeemed = async (redirectUri: string | undefined) => {
      const page = await gateway.authorize(request, gateway.signIn({ subject: 'implied' }))
      const cookie = gateway.signIn({ subject: 'implied' })
      const code = page.answer.get('code') ?? (await gateway.codeFor(request, cookie))
      return gateway.redeem(id, code, verifier, { redirect_uri: redirectUri })
    }
    expect((await redeemed(undefined)).status).toBe(200)
    expect((await redeemed(REDIRECT_URI)).status).toBe(200)
    expect((await redeemed(`${REDIRECT_URI}/other`)).body.error).toBe('invalid_grant')
    const repeated = await gateway.authorize(request, gateway.signIn({ subject: 'implied' }))
    expect(repeated.location?.startsWith(`${REDIRECT_URI}?`)).toBe(true)
    // A gateway of an earlier version reads the record, and compares the redirect URI.
    const code = repeated.answer.get('code') ?? ''
    const hash = createHash('sha256').update(code).digest('base64url')
    const record = await gateway.redis.direct.hget(`pc:code:${hash}`, 'record')
    expect(JSON.parse(record ?? '')).toMatchObject({ redirectUri: REDIRECT_URI })
    expect(record).not.toContain('isImplied')
  })

  test('a redirect URI that the authorization request names must be named for the code', async () => {
    const { code, verifier } = await allowed()
    const unnamed = { redirect_uri: undefined }
    expect((await gateway.redeem(id, code, verifier, unnamed)).body.error).toBe('invalid_grant')
    expect((await gateway.redeem(id, code, verifier)).status).toBe(200)
  })

  test.each([undefined, ''])('redirect_uri %j of a client with two gets a page', async (none) => {
    const several = await gateway.createClient({ redirectUris: [REDIRECT_URI, `${REDIRECT_URI}2`] })
    const request = gateway.requestOf(several, newVerifier(), { redirect_uri: none })
    const reply = await issuingNothing(() => gateway.authorize(request, gateway.signIn()))
    expect(reply).toMatchObject({ status: 400, location: null })
    expect(reply.headers.get('content-type')).toContain('text/html')
  })

  test('two redirect URIs in one request are refused', async () => {
    const query = new URLSearchParams(
      gateway.requestOf(id, newVerifier()) as Record<string, string>,
    )
    query.append('redirect_uri', 'https://evil.test/')
    const reply = await gateway.send(`/oauth/authorize?${query}`, {
      headers: { cookie: gateway.signIn() },
    })
    expect(reply).toMatchObject({ status: 400, location: null })
  })

  test('a client without the grant, an unknown client and a disabled client get a page', async () => {
    const disabled = await gateway.createClient()
    await gateway.registry.disable(disabled)
    const service = await gateway.registry.create({
      name: 'service',
      grants: ['client_credentials'],
    })
    for (const clientId of [disabled, service.client.id, crypto.randomUUID(), 'x']) {
      const request = gateway.requestOf(clientId, newVerifier())
      const reply = await issuingNothing(() => gateway.authorize(request, gateway.signIn()))
      expect({ status: reply.status, location: reply.location }).toEqual({
        status: 400,
        location: null,
      })
    }
  })

  test('the port of a loopback redirect is free; its host and path are not', async () => {
    const native = await gateway.createClient({ redirectUris: ['http://127.0.0.1/cb'] })
    const ask = (redirectUri: string) =>
      gateway.authorize(
        gateway.requestOf(native, newVerifier(), { redirect_uri: redirectUri }),
        gateway.signIn(),
      )
    expect((await ask('http://127.0.0.1:51004/cb')).status).toBe(200)
    for (const other of [
      'http://localhost:51004/cb',
      'http://127.0.0.1:51004/other',
      'http://127.0.0.1:99999999/cb',
      'http://127.0.0.1:70000/cb',
      'https://127.0.0.1:51004/cb',
      'http://127.0.0.1.evil.test/cb',
    ])
      expect(await ask(other)).toMatchObject({ status: 400, location: null })
  })
})

test('mix-up: each answer at the redirect URI names the issuer [S77]', async () => {
  const cookie = gateway.signIn()
  const request = gateway.requestOf(id, newVerifier())
  const page = await gateway.authorize({ ...request, prompt: 'consent' }, cookie)
  const answers = [
    await gateway.decide(page, cookie),
    await gateway.authorize({ ...request, response_type: 'token' }, cookie),
    await gateway.authorize({ ...request, prompt: 'none' }),
    await gateway.authorize({ ...request, scope: 'unknown:scope' }, cookie),
    await gateway.authorize({ ...request, request: 'x.y.z' }, cookie),
  ]
  expect(answers.map(({ answer }) => answer.get('error'))).toEqual([
    null,
    'unsupported_response_type',
    'login_required',
    'invalid_scope',
    'request_not_supported',
  ])
  for (const { answer, status } of answers)
    expect({ status, iss: answer.get('iss'), state: answer.get('state') }).toEqual({
      status: 303,
      iss: PUBLIC_URL,
      state: 'st',
    })
})

describe('CSRF on the consent [S77]', () => {
  async function shown() {
    const cookie = gateway.signIn()
    const request = gateway.requestOf(id, newVerifier(), { prompt: 'consent' })
    return { cookie, page: await gateway.authorize(request, cookie) }
  }

  test.each([
    ['cross-site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['same-site', { 'Sec-Fetch-Site': 'same-site' }],
    ['from the address bar', { 'Sec-Fetch-Site': 'none' }],
    ['of another origin', { Origin: 'https://evil.test' }],
    ['of a page without an origin', { Origin: 'null' }],
    ['without a header of browsers', {}],
  ])('a form %s issues nothing', async (_, headers) => {
    const { cookie, page } = await shown()
    const reply = await issuingNothing(() => gateway.decide(page, cookie, 'allow', headers))
    expect(reply).toMatchObject({ status: 400, location: null })
  })

  test('a page that another user was shown decides nothing', async () => {
    const { page } = await shown()
    const reply = await issuingNothing(() => gateway.decide(page, gateway.signIn()))
    expect(reply).toMatchObject({ status: 400, location: null })
  })

  test('a form without a session, without a request or with a guessed one decides nothing', async () => {
    const { page, cookie } = await shown()
    expect((await issuingNothing(() => gateway.decide(page, 'none'))).location).toBeNull()
    for (const text of ['', `name="request" value="${'A'.repeat(43)}"`])
      expect((await issuingNothing(() => gateway.decide({ text }, cookie))).location).toBeNull()
  })

  test('a page decides once', async () => {
    const { page, cookie } = await shown()
    const replies = await Promise.all([1, 2, 3].map(() => gateway.decide(page, cookie)))
    expect(replies.filter(({ answer }) => answer.has('code')).length).toBe(1)
  })

  test('a refusal of the user reaches the client and issues nothing', async () => {
    const { page, cookie } = await shown()
    const reply = await issuingNothing(() => gateway.decide(page, cookie, 'deny'))
    expect(reply.answer.get('error')).toBe('access_denied')
  })

  test('GET decides nothing', async () => {
    const { cookie } = await shown()
    const reply = await issuingNothing(() =>
      gateway.send('/oauth/consent?decision=allow', { headers: { cookie } }),
    )
    expect(reply.status).toBe(405)
  })
})

test('clickjacking: no page can be framed, and none runs a script [S77]', async () => {
  const cookie = gateway.signIn()
  const pages = [
    await gateway.authorize(gateway.requestOf(id, newVerifier(), { prompt: 'consent' }), cookie),
    await gateway.authorize({ client_id: 'unknown' }, cookie),
    await gateway.send('/oauth/consents', { headers: { cookie } }),
  ]
  for (const { headers, text } of pages) {
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("default-src 'none'")
    expect(headers.get('cache-control')).toContain('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect(text).not.toContain('<script')
  }
  expect(pages[0]?.headers.get('content-security-policy')).toContain(
    "form-action 'self' https://app.example.com",
  )
})

test('the name of a client is text, not HTML', async () => {
  const named = await gateway.createClient({ name: '<img src=x onerror=alert(1)>' })
  const page = await gateway.authorize(gateway.requestOf(named, newVerifier()), gateway.signIn())
  expect(page.text).toContain('&lt;img src=x')
  expect(page.text).not.toContain('<img')
})

describe('rights', () => {
  test('a token for a resource is valid there alone', async () => {
    const { code, verifier } = await allowed({ scope: 'mcp:use books:read orders:read' })
    const { body } = await gateway.redeem(id, code, verifier)
    expect((await gateway.call(body.access_token)).status).toBe(200)
    expect((await gateway.call(body.access_token, '/mcp/books')).status).toBe(200)
    expect(await refused(body.access_token, '/orders')).toBe(401)
    expect(await refused(body.access_token, '/-/admin/clients')).toBe(401)
  })

  test('a token has no more than the user, the request and the resource allow', async () => {
    const cookie = gateway.signIn({ roles: ['reader'] })
    const verifier = newVerifier()
    const request = gateway.requestOf(id, verifier, {
      scope: 'openid mcp:use books:read orders:read portcullis:clients',
    })
    const code = await gateway.codeFor(request, cookie)
    expect((await gateway.redeem(id, code, verifier)).body.scope).toBe('mcp:use')
  })

  test('a user without the rights, and an unknown resource, get no code', async () => {
    const cookie = gateway.signIn({ roles: ['operator'] })
    const none = await gateway.authorize(gateway.requestOf(id, newVerifier()), cookie)
    expect(none.answer.get('error')).toBe('access_denied')
    for (const resource of [
      `${PUBLIC_URL}/none`,
      `${PUBLIC_URL}/mcp/`,
      `${PUBLIC_URL}/mcp/../orders`,
      `${PUBLIC_URL}/-/admin`,
      'https://other.test/mcp',
      `${PUBLIC_URL}.evil.test/mcp`,
      'mcp',
      `${MCP}#x`,
    ]) {
      const request = gateway.requestOf(id, newVerifier(), { resource })
      const reply = await issuingNothing(() => gateway.authorize(request, gateway.signIn()))
      expect([resource, reply.answer.get('error')]).toEqual([resource, 'invalid_target'])
    }
  })

  test('a client of a tenant acts for its tenant alone', async () => {
    const ofTenant = await gateway.createClient({ tenant: 'acme' })
    const request = gateway.requestOf(ofTenant, newVerifier())
    const reply = await issuingNothing(() =>
      gateway.authorize(request, gateway.signIn({ tenant: 'other' })),
    )
    expect(reply.answer.get('error')).toBe('access_denied')
  })
})

describe('revocation between the consent and the code', () => {
  test.each(['subject', 'client'] as const)('a cutoff of the %s refuses the code', async (kind) => {
    const clientId = await gateway.createClient()
    const verifier = newVerifier()
    const cookie = gateway.signIn({ subject: `user-of-${kind}` })
    const code = await gateway.codeFor(gateway.requestOf(clientId, verifier), cookie)
    await gateway.revocations.revokeBefore({
      kind,
      issuer: kind === 'client' ? PUBLIC_URL : ISSUER,
      value: kind === 'client' ? clientId : `user-of-${kind}`,
      atSeconds: Math.floor(Date.now() / 1000) + 5,
      ttlSeconds: 100,
    })
    const reply = await issuingNothing(() => gateway.redeem(clientId, code, verifier))
    expect(reply.body.error).toBe('invalid_grant')
  })

  test('the end of the browser session refuses the code', async () => {
    const verifier = newVerifier()
    const cookie = gateway.signIn()
    const code = await gateway.codeFor(gateway.requestOf(id, verifier), cookie)
    const tokenIdHash = createHash('sha256').update(cookie).digest('base64url')
    const untilSeconds = Date.now() / 1000 + 100
    await gateway.revocations.revokeToken({ tokenIdHash, untilSeconds })
    const reply = await issuingNothing(() => gateway.redeem(id, code, verifier))
    expect(reply.body.error).toBe('invalid_grant')
  })
})

describe('public clients', () => {
  test('refresh replay: a refresh token that was used before its last use ends the session', async () => {
    const { code, verifier } = await allowed()
    const first = await gateway.redeem(id, code, verifier)
    const second = await gateway.refresh(id, first.body.refresh_token)
    const third = await gateway.refresh(id, second.body.refresh_token)
    expect((await gateway.call(third.body.access_token)).status).toBe(200)
    for (const { body } of [first, third]) {
      const replay = await issuingNothing(() => gateway.refresh(id, body.refresh_token))
      expect(replay.body.error).toBe('invalid_grant')
    }
    expect(await refused(third.body.access_token)).toBe(401)
  })

  test('a refresh token of another client is refused', async () => {
    const { code, verifier } = await allowed()
    const { body } = await gateway.redeem(id, code, verifier)
    const other = await gateway.createClient()
    const reply = await gateway.refresh(other, body.refresh_token)
    expect(reply.body.error).toBe('invalid_grant')
    expect((await gateway.refresh(id, body.refresh_token)).status).toBe(200)
  })

  test('a confidential client cannot omit its secret, and a public one cannot use other grants', async () => {
    const { client } = await gateway.registry.create({
      name: 'confidential',
      grants: ['client_credentials'],
    })
    const grant = { grant_type: 'client_credentials' }
    const omitted = await gateway.token({ ...grant, client_id: client.id })
    expect(omitted).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
    const used = await gateway.token({ ...grant, client_id: id })
    expect(used.body.error).toBe('unauthorized_client')
  })

  test('failures of others do not lock out a public client [S44]', async () => {
    const { code, verifier } = await allowed()
    const fail = (address: string) =>
      gateway.token(
        { grant_type: 'refresh_token', client_id: id, client_secret: 'wrong', refresh_token: 'x' },
        { address },
      )
    // More failures than an unknown address may see of a client with a secret.
    for (let address = 1; address <= 6; address++)
      await Promise.all(Array.from({ length: 18 }, () => fail(`192.0.2.${address}`)))
    expect((await gateway.redeem(id, code, verifier)).status).toBe(200)
  })

  test.each(['without a credential', 'with an empty secret'])(
    'failures %s do not lock out a client with a secret [S44]',
    async (how) => {
      const { client, secret = '' } = await gateway.registry.create({
        name: 'service',
        grants: ['client_credentials'],
        roles: ['reader'],
      })
      const basic = (password: string) => ({
        headers: { Authorization: `Basic ${btoa(`${client.id}:${password}`)}` },
      })
      const grant = { grant_type: 'client_credentials' }
      const fail = (address: string) =>
        how === 'with an empty secret'
          ? gateway.token(grant, { ...basic(''), address })
          : gateway.token({ ...grant, client_id: client.id }, { address })
      for (let address = 1; address <= 6; address++)
        await Promise.all(Array.from({ length: 18 }, () => fail(`198.51.100.${address}`)))
      expect((await gateway.token(grant, basic(secret))).status).toBe(200)
    },
  )

  test('a public client cannot introspect tokens', async () => {
    const { code, verifier } = await allowed()
    const { body } = await gateway.redeem(id, code, verifier)
    const reply = await gateway.send('/oauth/introspect', {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ client_id: id, token: body.access_token }),
    })
    expect(reply).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  })

  test('a client without the refresh grant gets no refresh token', async () => {
    const clientId = await gateway.createClient({ grants: ['authorization_code'] })
    const { code, verifier } = await allowed({}, clientId)
    const { status, body } = await gateway.redeem(clientId, code, verifier)
    expect({ status, refreshToken: body.refresh_token }).toEqual({ status: 200 })
  })
})

test('an outage of Redis is 503 on a page, and never an answer of the client', async () => {
  const cookie = gateway.signIn()
  gateway.redis.setAnswering(false)
  try {
    const reply = await gateway.authorize(gateway.requestOf(id, newVerifier()), cookie)
    expect(reply).toMatchObject({ status: 503, location: null })
    expect(reply.headers.get('retry-after')).not.toBeNull()
  } finally {
    gateway.redis.setAnswering(true)
  }
})
