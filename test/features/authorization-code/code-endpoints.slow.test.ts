/** The authorization endpoint, pushed requests, consents, metadata and CORS. */
import { auth, discoverAuthorizationServerMetadata } from '@modelcontextprotocol/sdk/client/auth.js'
import { OAuthMetadataSchema } from '@modelcontextprotocol/sdk/shared/auth.js'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProver } from '../../access/tokens/prover.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { namesInLanes } from '../../harness/lanes.ts'
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
  gateway = await startCodeGateway({ scopes: { 'mcp:use': 'Use the library' } })
  id = await gateway.createClient()
})
afterAll(() => gateway.close())

const requestOf = (more = {}, clientId = id) => gateway.requestOf(clientId, newVerifier(), more)

test('a withdrawal of what was never allowed writes nothing into the audit trail [S66]', async () => {
  const cookie = gateway.signIn({ subject: 'writer' })
  const withdraw = (client: string) =>
    gateway.send('/oauth/consents', {
      method: 'POST',
      headers: { cookie, 'Sec-Fetch-Site': 'same-origin' },
      body: new URLSearchParams({ client }),
    })
  const before = gateway.events.length
  for (const client of ['a made-up text', 'x'.repeat(5_000), id, 'https://evil.test/c'])
    expect((await withdraw(client)).status).toBe(303)
  expect(gateway.events.slice(before).map(({ change }) => change)).toEqual(
    Array.from({ length: 4 }, () => undefined),
  )
  expect(JSON.stringify(gateway.events.slice(before))).not.toContain('made-up')
})

describe('consent [S77]', () => {
  test('the page names the client, the host of the redirect and the permissions in words', async () => {
    const { text, status } = await gateway.authorize(requestOf(), gateway.signIn())
    expect(status).toBe(200)
    for (const part of ['Reading app', 'app.example.com', 'Use the library', 'books:read', MCP])
      expect(text).toContain(part)
  })

  test('it is remembered for the client and its scopes, until more is requested', async () => {
    const cookie = gateway.signIn({ subject: 'remembered' })
    await gateway.codeFor(requestOf({ scope: 'mcp:use' }), cookie)
    const again = await gateway.authorize(requestOf({ scope: 'mcp:use' }), cookie)
    expect(again).toMatchObject({ status: 303 })
    expect(again.answer.get('code')).not.toBeNull()
    for (const more of [
      { scope: 'mcp:use books:read' },
      { scope: 'mcp:use', resource: undefined },
      { scope: 'mcp:use', prompt: 'consent' },
    ])
      expect((await gateway.authorize(requestOf(more), cookie)).status).toBe(200)
    const other = gateway.signIn({ subject: 'another' })
    expect((await gateway.authorize(requestOf({ scope: 'mcp:use' }), other)).status).toBe(200)
  })

  test('it is not remembered for a program on the computer of the user', async () => {
    const native = await gateway.createClient({ redirectUris: ['http://127.0.0.1/cb'] })
    const more = { redirect_uri: 'http://127.0.0.1:4711/cb' }
    const cookie = gateway.signIn({ subject: 'native' })
    await gateway.codeFor(requestOf(more, native), cookie)
    const again = await gateway.authorize(requestOf(more, native), cookie)
    expect(again.status).toBe(200)
    expect(again.text).toContain('only if you have just started')
  })

  test.each([
    ['http://127.0.0.1/callback', 'http://127.0.0.1:51004/callback', 'http://127.0.0.1:51004'],
    ['http://[::1]/callback', 'http://[::1]:51004/callback', 'http:'],
    ['com.example.app:/callback', 'com.example.app:/callback', 'com.example.app:'],
  ])('the form may lead to %s', async (registered, redirectUri, source) => {
    const client = await gateway.createClient({ redirectUris: [registered] })
    const request = requestOf({ redirect_uri: redirectUri }, client)
    const { headers } = await gateway.authorize(request, gateway.signIn())
    expect(headers.get('content-security-policy')).toContain(`; form-action 'self' ${source};`)
  })

  test('a user withdraws it: the tokens end, and the page appears again', async () => {
    const cookie = gateway.signIn({ subject: 'leaving' })
    const verifier = newVerifier()
    const code = await gateway.codeFor(gateway.requestOf(id, verifier), cookie)
    const { body } = await gateway.redeem(id, code, verifier)
    const list = await gateway.send('/oauth/consents', { headers: { cookie } })
    expect(list.text).toContain('Reading app')
    const withdraw = (headers: Record<string, string>) =>
      gateway.send('/oauth/consents', {
        method: 'POST',
        headers: { cookie, 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
        body: new URLSearchParams({ client: id }),
      })
    expect((await withdraw({ 'Sec-Fetch-Site': 'cross-site' })).status).toBe(400)
    expect((await gateway.call(body.access_token)).status).toBe(200)
    expect((await withdraw({ 'Sec-Fetch-Site': 'same-origin' })).status).toBe(303)
    const before = gateway.originCalls()
    expect((await gateway.call(body.access_token)).status).toBe(401)
    expect(gateway.originCalls()).toBe(before)
    expect((await gateway.refresh(id, body.refresh_token)).body.error).toBe('invalid_grant')
    expect((await gateway.authorize(gateway.requestOf(id, verifier), cookie)).status).toBe(200)
  })

  const withdraw = (cookie: string) =>
    gateway.send('/oauth/consents', {
      method: 'POST',
      headers: {
        cookie,
        'Content-Type': 'application/x-www-form-urlencoded',
        'Sec-Fetch-Site': 'same-origin',
      },
      body: new URLSearchParams({ client: id }),
    })

  test('requests of the client during a withdrawal do not undo it', async () => {
    for (let round = 0; round < 10; round++) {
      const cookie = gateway.signIn({ subject: `racing-${round}` })
      const verifier = newVerifier()
      const request = gateway.requestOf(id, verifier)
      await gateway.codeFor(request, cookie)
      const ask = () => gateway.authorize(request, cookie)
      const [done, ...answers] = await Promise.all([withdraw(cookie), ask(), ask(), ask(), ask()])
      expect(done.status).toBe(303)
      for (const { answer } of answers) {
        const code = answer.get('code')
        if (code !== null) expect((await gateway.redeem(id, code, verifier)).status).toBe(400)
      }
      // The page asks again.
      expect((await ask()).status).toBe(200)
    }
  })

  test('a client has at most 40 sessions of a user; the oldest ends', async () => {
    const cookie = gateway.signIn({ subject: 'often' })
    const verifier = newVerifier()
    const request = gateway.requestOf(id, verifier)
    const tokenOf = async () =>
      (await gateway.redeem(id, await gateway.codeFor(request, cookie), verifier)).body.access_token
    const first = await tokenOf()
    for (let n = 0; n < 38; n++) await gateway.codeFor(request, cookie)
    const last = await tokenOf()
    expect((await gateway.call(first)).status).toBe(200)
    await gateway.codeFor(request, cookie)
    expect([(await gateway.call(first)).status, (await gateway.call(last)).status]).toEqual([
      401, 200,
    ])
    expect((await withdraw(cookie)).status).toBe(303)
    expect((await gateway.call(last)).status).toBe(401)
  })
})

test('one address cannot load the pages without end, and a banned one not at all', async () => {
  const send = (address: string) => gateway.send('/oauth/authorize?client_id=x', { address })
  const statuses = []
  for (let n = 0; n < 301; n++) statuses.push((await send('198.51.100.98')).status)
  expect(statuses.filter((status) => status === 400).length).toBe(300)
  expect(statuses.at(-1)).toBe(429)
  const until = Math.floor(Date.now() / 1000) + 60
  for (const name of namesInLanes('pc:ban:address:198.51.100.97'))
    await gateway.redis.direct.set(name, String(until), 'EX', 60)
  expect((await send('198.51.100.97')).status).toBe(403)
})

describe('operators', () => {
  const asOperator = async (path: string, init: { method?: string; body?: object } = {}) => {
    const { client, secret = '' } = await gateway.registry.create({
      name: 'operator',
      grants: ['client_credentials'],
      roles: ['operator'],
    })
    const grant = { grant_type: 'client_credentials', client_id: client.id, client_secret: secret }
    const { body } = await gateway.token(grant)
    return gateway.send(`/-/admin${path}`, {
      method: init.method ?? 'GET',
      headers: {
        Authorization: `Bearer ${body.access_token}`,
        ...(init.body && { 'Content-Type': 'application/json' }),
      },
      ...(init.body && { body: JSON.stringify(init.body) }),
    })
  }

  test('they list the consents of a user, and withdraw one with its tokens', async () => {
    const cookie = gateway.signIn({ subject: 'watched' })
    const verifier = newVerifier()
    const code = await gateway.codeFor(gateway.requestOf(id, verifier), cookie)
    const { body } = await gateway.redeem(id, code, verifier)
    const listed = await asOperator('/consents?subject=watched')
    expect(listed.body.consents).toMatchObject([
      { client: id, name: 'Reading app', redirectUri: REDIRECT_URI, issuer: ISSUER },
    ])
    const withdrawal = { method: 'POST', body: { subject: 'watched', client: id } }
    expect((await asOperator('/consents/withdrawals', withdrawal)).status).toBe(204)
    expect(gateway.events.at(-1)?.change).toEqual({ action: 'consent.withdraw', target: id })
    const before = gateway.originCalls()
    expect((await gateway.call(body.access_token)).status).toBe(401)
    expect(gateway.originCalls()).toBe(before)
    expect((await asOperator('/consents/withdrawals', withdrawal)).status).toBe(404)
    expect((await asOperator('/consents?subject=watched')).body.consents).toEqual([])
  })

  test('they register public clients, whose redirect URIs are checked', async () => {
    const client = { name: 'n', public: true, grants: ['authorization_code'] }
    const create = (more: object) =>
      asOperator('/clients', { method: 'POST', body: { ...client, ...more } })
    const created = await create({ redirectUris: ['cursor://callback'] })
    expect(created).toMatchObject({ status: 201, body: { authentication: 'none' } })
    expect(created.body).not.toHaveProperty('clientSecret')
    for (const more of [
      {},
      { redirectUris: ['javascript:alert(1)'] },
      { redirectUris: ['http://app.example.com/cb'] },
      { redirectUris: [REDIRECT_URI], grants: ['authorization_code', 'client_credentials'] },
      { redirectUris: [REDIRECT_URI], grants: ['refresh_token'] },
    ])
      expect((await create(more)).status).toBe(422)
  })
})

test.each([
  ['?code=old&lang=en', '?lang=en&'],
  ['?lang=en&state=fixed', '?lang=en&'],
  ['?state&iss=https://other.test&error=x&error_description=y&error_uri=z', '?'],
  ['?codec=1&x=code&&a=%20', '?codec=1&x=code&&a=%20&'],
  ['?', '?'],
  // A query may contain the characters that begin and divide it elsewhere.
  ['?return=/issues?state=open', '?return=/issues?state=open&'],
  ['?q=what?', '?q=what?&'],
  ['/x&state=1/cb?app=7', '/x&state=1/cb?app=7&'],
  ['?next=/p?code=5&tenant=7', '?next=/p?code=5&tenant=7&'],
])(
  'a response has each of its parameters once, whatever the redirect URI has: %s',
  async (query, kept) => {
    const redirectUri = REDIRECT_URI + query
    const clientId = await gateway.createClient({ redirectUris: [redirectUri] })
    const verifier = newVerifier()
    const request = { ...gateway.requestOf(clientId, verifier), redirect_uri: redirectUri }
    const cookie = gateway.signIn()
    const refused = await gateway.authorize({ ...request, prompt: 'none' }, cookie)
    expect(refused.location?.split('error=')[0]).toBe(REDIRECT_URI + kept)
    const page = await gateway.authorize(request, cookie)
    const { location, answer } = await gateway.decide(page, cookie)
    expect(location?.startsWith(`${REDIRECT_URI}${kept}code=`)).toBe(true)
    for (const name of ['code', 'state', 'iss']) expect(answer.getAll(name), name).toHaveLength(1)
    const code = answer.get('code') ?? ''
    const more = { redirect_uri: redirectUri }
    expect((await gateway.redeem(clientId, code, verifier, more)).status).toBe(200)
  },
)

test('a client with a secret uses the same endpoint, and authenticates for the code', async () => {
  const { client, secret } = await gateway.registry.create({
    name: 'web',
    grants: ['authorization_code', 'refresh_token'],
    redirectUris: [REDIRECT_URI],
  })
  const verifier = newVerifier()
  const cookie = gateway.signIn({ subject: 'web' })
  const code = await gateway.codeFor(gateway.requestOf(client.id, verifier), cookie)
  expect((await gateway.redeem(client.id, code, verifier)).body.error).toBe('invalid_client')
  const issued = await gateway.redeem(client.id, code, verifier, { client_secret: secret })
  expect((await gateway.call(issued.body.access_token)).status).toBe(200)
})

describe('login', () => {
  const returnPathOf = (location: string | null) =>
    new URL(location ?? '', PUBLIC_URL).searchParams.get('return_to') ?? ''

  test('a user without a session goes to the sign-in, and comes back to the same request', async () => {
    const request = requestOf()
    const reply = await gateway.authorize(request)
    expect(reply.status).toBe(303)
    expect(reply.location).toMatch(/^\/oauth\/sign-in\?/)
    const back = new URL(returnPathOf(reply.location), PUBLIC_URL)
    expect(back.pathname).toBe('/oauth/authorize')
    expect(Object.fromEntries(back.searchParams)).toEqual(request)
  })

  test.each([
    { prompt: 'login' },
    { prompt: 'login consent' },
    { prompt: 'select_account' },
    { max_age: '60' },
  ])('%j demands a new login once', async (more) => {
    const issuedAtSeconds = Math.floor(Date.now() / 1000) - 3_600
    const old = gateway.signIn({ issuedAtSeconds })
    const reply = await gateway.authorize(requestOf(more), old)
    expect(reply.location).toMatch(/^\/oauth\/sign-in\?/)
    const path = returnPathOf(reply.location)
    expect((await gateway.send(path, { headers: { cookie: gateway.signIn() } })).status).toBe(200)
    // The provider has not let the user log in again.
    const same = await gateway.send(path, { headers: { cookie: old } })
    expect(same.answer.get('error')).toBe(
      'max_age' in more ? 'unmet_authentication_requirements' : 'login_required',
    )
  })

  test.each([
    [{ prompt: 'login' }, 300],
    [{ prompt: 'select_account' }, 300],
    [{ max_age: '60' }, 300],
    [{ prompt: 'login', max_age: '3600' }, 300],
  ])('the time of a login in the URL meets no demand: %j', async (demand, ageSeconds) => {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const cookie = gateway.signIn({
      subject: 'login-after',
      issuedAtSeconds: nowSeconds - ageSeconds,
    })
    for (const isPushed of [true, false])
      for (const seconds of [0, nowSeconds - 590, nowSeconds, nowSeconds + 600]) {
        const added = { login_after: String(seconds) }
        const request = requestOf(demand) as Record<string, string>
        let path = `/oauth/authorize?${new URLSearchParams({ ...request, ...added })}`
        if (isPushed) {
          // Neither a parameter that the client pushes nor one of the query counts.
          const pushed = await gateway.send('/oauth/par', {
            method: 'POST',
            body: new URLSearchParams({ ...request, ...added }),
          })
          const query = { client_id: id, request_uri: pushed.body.request_uri, ...added }
          path = `/oauth/authorize?${new URLSearchParams(query)}&prompt=none&max_age=9999`
        }
        const { location } = await gateway.send(path, { headers: { cookie } })
        expect([isPushed, seconds, location?.slice(0, 15)]).toEqual([
          isPushed,
          seconds,
          '/oauth/sign-in?',
        ])
        expect(returnPathOf(location)).not.toContain('login_after')
      }
  })

  test('max_age is met by a login that was young enough when the request came', async () => {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const old = gateway.signIn({ issuedAtSeconds: nowSeconds - 7_200 })
    const { location } = await gateway.authorize(requestOf({ max_age: '3600' }), old)
    const path = returnPathOf(location)
    const statusFor = async (ageSeconds: number) => {
      const cookie = gateway.signIn({ issuedAtSeconds: nowSeconds - ageSeconds })
      return (await gateway.send(path, { headers: { cookie } })).status
    }
    expect(await statusFor(1_800)).toBe(200)
    expect(await statusFor(3_700)).toBe(303)
  })

  test('an address may demand 60 logins in a minute', async () => {
    const address = '192.0.2.77'
    const request = new URLSearchParams(requestOf({ prompt: 'login' }) as Record<string, string>)
    const statuses = []
    for (let at = 0; at < 61; at++)
      statuses.push((await gateway.send(`/oauth/authorize?${request}`, { address })).status)
    expect([statuses.filter((status) => status === 303).length, statuses.at(-1)]).toEqual([60, 429])
  })

  test('prompt=none shows no page', async () => {
    const none = { prompt: 'none' }
    const reply = await gateway.authorize(requestOf(none))
    expect(reply.answer.get('error')).toBe('login_required')
    const cookie = gateway.signIn({ subject: 'quiet' })
    const unknown = await gateway.authorize(requestOf(none), cookie)
    expect(unknown.answer.get('error')).toBe('consent_required')
    await gateway.codeFor(requestOf(), cookie)
    expect((await gateway.authorize(requestOf(none), cookie)).answer.get('code')).not.toBeNull()
    const issuedAtSeconds = Math.floor(Date.now() / 1000) - 7_200
    const old = gateway.signIn({ subject: 'quiet', issuedAtSeconds })
    const aged = await gateway.authorize(requestOf({ ...none, max_age: '3600' }), old)
    expect(aged.answer.get('error')).toBe('login_required')
  })
})

describe('pushed requests', () => {
  const push = (params: Record<string, string>, address?: string, headers = {}) =>
    gateway.send('/oauth/par', {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(params),
      ...(address !== undefined && { address }),
    })
  /** Sends a query as it is, without the redirect that follows. */
  const open = (query: Record<string, string>, cookie: string) =>
    gateway.send(`/oauth/authorize?${new URLSearchParams(query)}`, { headers: { cookie } })

  test('a pushed request replaces the parameters of the query, and lives for a minute [S77]', async () => {
    const verifier = newVerifier()
    const request = gateway.requestOf(id, verifier) as Record<string, string>
    const { status, body, headers } = await push(request)
    expect({ status, expires: body.expires_in }).toEqual({ status: 201, expires: 60 })
    expect(headers.get('cache-control')).toBe('no-store')
    // The hash of the last part, as `challengeOf` computes it.
    const hash = challengeOf(body.request_uri.split(':').at(-1))
    const [key = ''] = await gateway.redis.direct.keys(`pc:*authorization-request:${hash}`)
    const ttl = await gateway.redis.direct.ttl(key)
    expect(ttl).toBeGreaterThan(50)
    expect(ttl).toBeLessThanOrEqual(60)
    const query = {
      client_id: id,
      request_uri: body.request_uri,
      redirect_uri: 'https://evil.test/',
      scope: 'orders:write',
    }
    const cookie = gateway.signIn({ subject: 'pushed' })
    const code = await gateway.codeFor(query, cookie)
    expect((await gateway.redeem(id, code, verifier)).body.scope).toBe('mcp:use books:read')
  })

  test('a request_uri is used once, also at the same time, and gets one code [S77]', async () => {
    const cookie = gateway.signIn({ subject: 'pushed-once' })
    await gateway.codeFor(requestOf(), cookie)
    const { body } = await push(requestOf() as Record<string, string>)
    const query = { client_id: id, request_uri: body.request_uri }
    const replies = await Promise.all([1, 2, 3, 4].map(() => open(query, cookie)))
    expect(replies.filter(({ answer }) => answer.has('code'))).toHaveLength(1)
    expect(await gateway.issuingNothing(() => open(query, cookie))).toMatchObject({
      status: 400,
      location: null,
    })
  })

  test('two consent pages of one pushed request get one code [S77]', async () => {
    const cookie = gateway.signIn({ subject: 'pushed-twice' })
    const { body } = await push(requestOf() as Record<string, string>)
    const load = () => open({ client_id: id, request_uri: body.request_uri }, cookie)
    const pages = [await load(), await load()]
    const decided = await Promise.all(pages.map((page) => gateway.decide(page, cookie)))
    expect(decided.filter(({ answer }) => answer.has('code'))).toHaveLength(1)
    const other = decided.find(({ answer }) => !answer.has('code'))
    expect(other?.answer.get('error')).toBe('invalid_request_uri')
  })

  test('a client with a secret or keys authenticates, as at the token endpoint [S77]', async () => {
    const described = {
      name: 'web',
      grants: ['authorization_code' as const],
      redirectUris: [REDIRECT_URI],
    }
    const { client, secret = '' } = await gateway.registry.create(described)
    const request = gateway.requestOf(client.id, newVerifier()) as Record<string, string>
    for (const more of [{}, { client_secret: 'wrong' }])
      expect(await push({ ...request, ...more })).toMatchObject({
        status: 401,
        body: { error: 'invalid_client' },
      })
    expect((await push({ ...request, client_secret: secret })).status).toBe(201)
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
    const signed = await gateway.registry.create({
      ...described,
      jwks: { keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256' }] } as never,
    })
    const assertionFor = (audience: string) =>
      new SignJWT({ jti: crypto.randomUUID() })
        .setProtectedHeader({ alg: 'ES256' })
        .setIssuer(signed.client.id)
        .setSubject(signed.client.id)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('1m')
        .sign(privateKey)
    // RFC 9126 section 2.
    for (const [audience, status] of [
      [PUBLIC_URL, 201],
      [`${PUBLIC_URL}/oauth/token`, 201],
      [`${PUBLIC_URL}/oauth/par`, 201],
      [`${PUBLIC_URL}/oauth/authorize`, 401],
    ] as const) {
      const pushed = await push({
        ...(gateway.requestOf(signed.client.id, newVerifier()) as Record<string, string>),
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await assertionFor(audience),
      })
      expect([audience, pushed.status]).toEqual([audience, status])
    }
  })

  test('a mistake is reported at once, and the request of another client is refused', async () => {
    const request = requestOf() as Record<string, string>
    const wrong = await push({ ...request, redirect_uri: 'https://evil.test/' })
    expect(wrong).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    const plain = await push({ ...request, code_challenge_method: 'plain' })
    expect(plain.body.error).toBe('invalid_request')
    const { body } = await push(request)
    const other = { client_id: await gateway.createClient(), request_uri: body.request_uri }
    expect(await gateway.authorize(other, gateway.signIn())).toMatchObject({
      status: 400,
      location: null,
    })
  })

  test('a pushed request gets one code, also after a login that it has demanded', async () => {
    const request = { ...requestOf(), prompt: 'login' } as Record<string, string>
    const { body } = await push(request)
    const old = gateway.signIn({ subject: 'one-code' })
    const query = { client_id: id, request_uri: body.request_uri }
    const first = await open(query, old)
    const back = new URL(first.location ?? '', PUBLIC_URL).searchParams.get('return_to') ?? ''
    const cookie = gateway.signIn({ subject: 'one-code' })
    const pages = await Promise.all(
      [back, back].map((path) => gateway.send(path, { headers: { cookie } })),
    )
    const decisions = []
    for (const page of pages) decisions.push(await gateway.decide(page, cookie))
    expect(decisions.map(({ answer }) => answer.has('code'))).toEqual([true, false])
    expect((await open(query, cookie)).status).toBe(400)
  })

  test('a proof binds the code to its key, and is used once [S77]', async () => {
    const { proof, thumbprint } = await createProver()
    const claims = () => ({ jti: crypto.randomUUID(), iat: Math.floor(Date.now() / 1000) })
    const proofOf = (path: string) => proof({ htm: 'POST', htu: PUBLIC_URL + path, ...claims() })
    const verifier = newVerifier()
    const request = gateway.requestOf(id, verifier) as Record<string, string>
    const dpop = await proofOf('/oauth/par')
    const { body } = await push(request, undefined, { DPoP: dpop })
    const cookie = gateway.signIn({ subject: 'pushed-proof' })
    const code = await gateway.codeFor({ client_id: id, request_uri: body.request_uri }, cookie)
    const form = {
      ...{ grant_type: 'authorization_code', client_id: id, code, code_verifier: verifier },
      redirect_uri: REDIRECT_URI,
    }
    const thief = await createProver()
    const stolen = await thief.proof({
      ...{ htm: 'POST', htu: `${PUBLIC_URL}/oauth/token` },
      ...claims(),
    })
    for (const [headers, refusal] of [
      [{}, 'invalid_dpop_proof'],
      [{ DPoP: stolen }, 'invalid_grant'],
    ] as const) {
      const reply = await gateway.issuingNothing(() => gateway.token(form, { headers }))
      expect(reply).toMatchObject({ status: 400, body: { error: refusal } })
    }
    const headers = { DPoP: await proofOf('/oauth/token') }
    expect((await gateway.token(form, { headers })).body.token_type).toBe('DPoP')

    const error = 'invalid_dpop_proof'
    const replay = await push(request, undefined, { DPoP: dpop })
    expect(replay).toMatchObject({ status: 400, body: { error } })
    const otherKey = {
      ...request,
      dpop_jkt: thumbprint.replace(/^./, (c) => (c === 'A' ? 'B' : 'A')),
    }
    const mixed = await push(otherKey, undefined, { DPoP: await proofOf('/oauth/par') })
    expect(mixed).toMatchObject({ status: 400, body: { error } })
    const elsewhere = await push(request, undefined, { DPoP: await proofOf('/oauth/token') })
    expect(elsewhere).toMatchObject({ status: 400, body: { error } })
  })

  test('one address cannot fill the store', async () => {
    const request = requestOf() as Record<string, string>
    const replies = []
    for (let n = 0; n < 61; n++) replies.push(await push(request, '198.51.100.99'))
    expect(replies.filter(({ status }) => status === 201).length).toBe(60)
    expect(replies.at(-1)).toMatchObject({ status: 429 })
    expect(replies.at(-1)?.headers.get('retry-after')).not.toBeNull()
  })
})

describe('metadata', () => {
  const fetchFn = async (url: string | URL, init?: RequestInit) => {
    const { pathname, search } = new URL(url)
    const { status, text, headers } = await gateway.send(pathname + search, init)
    return new Response(text === '' ? null : text, { status, headers })
  }

  test('the official SDK accepts it', async () => {
    const metadata = await discoverAuthorizationServerMetadata(PUBLIC_URL, { fetchFn })
    expect(OAuthMetadataSchema.parse(metadata)).toMatchObject({
      issuer: PUBLIC_URL,
      authorization_endpoint: `${PUBLIC_URL}/oauth/authorize`,
      pushed_authorization_request_endpoint: `${PUBLIC_URL}/oauth/par`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    })
    expect(metadata).not.toHaveProperty('registration_endpoint')
    expect(metadata?.grant_types_supported).toContain('authorization_code')
    expect(metadata?.token_endpoint_auth_methods_supported).toContain('none')
    expect(metadata?.scopes_supported).toContain('mcp:use')
  })

  test('the official SDK gets tokens with it', async () => {
    let codeVerifier = ''
    let url = new URL(PUBLIC_URL)
    // biome-ignore lint/suspicious/noExplicitAny: the SDK's own type is longer than this test
    let saved: any
    const provider = {
      redirectUrl: REDIRECT_URI,
      clientMetadata: { redirect_uris: [REDIRECT_URI] },
      clientInformation: () => ({ client_id: id }),
      tokens: () => saved,
      saveTokens: (tokens: object) => {
        saved = tokens
      },
      redirectToAuthorization: (to: URL) => {
        url = to
      },
      saveCodeVerifier: (text: string) => {
        codeVerifier = text
      },
      codeVerifier: () => codeVerifier,
    }
    const options = { serverUrl: PUBLIC_URL, fetchFn }
    expect(await auth(provider, options)).toBe('REDIRECT')
    const cookie = gateway.signIn({ subject: 'sdk' })
    const page = await gateway.send(url.pathname + url.search, { headers: { cookie } })
    const { answer } = await gateway.decide(page, cookie)
    const authorizationCode = answer.get('code') ?? ''
    expect(await auth(provider, { ...options, authorizationCode })).toBe('AUTHORIZED')
    expect((await gateway.call(saved.access_token, '/orders')).status).toBe(200)
  })
})

describe('OpenAPI', () => {
  const described = async (of: CodeGateway) => (await of.send('/-/openapi.json')).body.paths

  test('the document has the endpoints for programs and the calls of operators', async () => {
    const paths = await described(gateway)
    for (const [path, method] of [
      ['/oauth/authorize', 'get'],
      ['/oauth/par', 'post'],
      ['/-/admin/consents', 'get'],
      ['/-/admin/consents/withdrawals', 'post'],
    ] as const)
      expect(Object.keys(paths[path] ?? {}), path).toEqual([method])
    const client = paths['/-/admin/clients'].post.requestBody.content['application/json'].schema
    expect(Object.keys(client.properties)).toEqual(
      expect.arrayContaining(['public', 'redirectUris', 'jwks']),
    )
    expect(paths).not.toHaveProperty('/oauth/register')
    const { text } = await gateway.send('/-/docs')
    expect(text).toContain('<h3><code>POST /oauth/par</code>')
  })

  test('it has the registration only if clients can register', async () => {
    const open = await startCodeGateway({ registration: true })
    const { post } = (await described(open))['/oauth/register']
    const { example } = post.requestBody.content['application/json']
    const reply = await open.send('/oauth/register', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(example),
    })
    expect(reply.status).toBe(201)
    await open.close()
  })
})

describe('CORS', () => {
  const preflight = (path: string) =>
    gateway.send(path, {
      method: 'OPTIONS',
      headers: { Origin: 'https://page.test', 'Access-Control-Request-Method': 'POST' },
    })

  test.each(['/oauth/token', '/oauth/revoke', '/oauth/par'])(
    'pages of every origin may call %s, without credentials',
    async (path) => {
      const { status, headers } = await preflight(path)
      expect(status).toBe(204)
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      const { headers: more } = await gateway.send(path, { method: 'POST' })
      expect(more.get('access-control-allow-origin')).toBe('*')
    },
  )

  test.each([
    'oauth-authorization-server',
    'oauth-protected-resource',
    'oauth-protected-resource/mcp',
    'jwks.json',
  ])('pages of every origin may read /.well-known/%s, without credentials', async (name) => {
    const { status, headers } = await preflight(`/.well-known/${name}`)
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    const read = await gateway.send(`/.well-known/${name}`)
    expect([read.status, read.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    expect(read.headers.get('access-control-allow-credentials')).toBeNull()
  })

  test('a document that the gateway does not have is not described to pages', async () => {
    const path = '/.well-known/oauth-protected-resource/none'
    expect((await preflight(path)).headers.get('access-control-allow-origin')).toBeNull()
  })

  test.each([
    'oauth-authorization-server',
    'oauth-protected-resource',
    'oauth-protected-resource/mcp',
    'jwks.json',
  ])('OPTIONS of /.well-known/%s that is no preflight request is not for pages', async (name) => {
    const { headers } = await gateway.send(`/.well-known/${name}`, { method: 'OPTIONS' })
    expect(headers.get('access-control-allow-origin')).toBeNull()
    const head = await gateway.send(`/.well-known/${name}`, { method: 'HEAD' })
    expect([head.status, head.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
  })

  test('a public client may send its id without a secret in Basic credentials', async () => {
    const native = await gateway.createClient()
    const verifier = newVerifier()
    const redeem = async (credentials: string) => {
      const code = await gateway.codeFor(gateway.requestOf(native, verifier), gateway.signIn())
      const grant = { grant_type: 'authorization_code', code, code_verifier: verifier }
      const headers = { Authorization: `Basic ${btoa(credentials)}` }
      return gateway.token({ ...grant, redirect_uri: REDIRECT_URI }, { headers })
    }
    expect((await redeem(`${native}:`)).status).toBe(200)
    expect((await redeem(`${native}:x`)).body.error).toBe('invalid_client')
    const service = await gateway.registry.create({ name: 'x', grants: ['client_credentials'] })
    const headers = { Authorization: `Basic ${btoa(`${service.client.id}:`)}` }
    const confidential = await gateway.token({ grant_type: 'client_credentials' }, { headers })
    expect(confidential).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  test.each(['/oauth/authorize', '/oauth/consent', '/oauth/consents', '/oauth/introspect'])(
    'no page of another origin may call %s',
    async (path) => {
      const { headers } = await preflight(path)
      expect(headers.get('access-control-allow-origin')).toBeNull()
    },
  )
})
