/**
 * Checks of the FAPI 2.0 security profile, as its conformance suite makes them: pushed requests, times of
 * assertions and proofs, and what tokens are bound to.
 */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newClientSchema } from '../../../src/features/authorization-server/client.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { createProver } from '../../access/tokens/prover.ts'
import {
  type CodeGateway,
  newVerifier,
  PUBLIC_URL,
  REDIRECT_URI,
  startCodeGateway,
} from './code-gateway.ts'

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

let gateway: CodeGateway
beforeAll(async () => {
  gateway = await startCodeGateway()
})
afterAll(() => gateway?.close())

type Described = Parameters<CodeGateway['registry']['create']>[0]
type Claims = Readonly<Record<string, unknown>>

const REQUESTS = 'pc:authorization-request:*'
const nowSeconds = () => Math.floor(Date.now() / 1000)

/** Registers a confidential client with a key, and signs for it. */
async function createBank(on = gateway, described: Partial<Described> = {}, alg = 'ES256') {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const { client } = await on.registry.create({
    name: 'bank',
    grants: ['authorization_code', 'refresh_token', 'client_credentials'],
    redirectUris: [REDIRECT_URI],
    roles: ['reader'],
    jwks: { keys: [{ ...(await exportJWK(publicKey)), alg }] } as never,
    ...described,
  })
  const { proof, thumbprint } = await createProver()
  const proofFor = (path: string, claims: Claims = {}) =>
    proof({
      ...{ htm: 'POST', htu: PUBLIC_URL + path, jti: crypto.randomUUID(), iat: nowSeconds() },
      ...claims,
    })
  const assertion = (claims: Claims = {}) =>
    new SignJWT({
      ...{ iss: client.id, sub: client.id, aud: PUBLIC_URL, jti: crypto.randomUUID() },
      ...{ iat: nowSeconds(), exp: nowSeconds() + 60 },
      ...claims,
    })
      .setProtectedHeader({ alg })
      .sign(privateKey)
  const authenticated = async (claims?: Claims) => ({
    client_id: client.id,
    client_assertion_type: JWT_BEARER,
    client_assertion: await assertion(claims),
  })
  const post = (path: string, form: object, headers: Record<string, string> = {}) =>
    on.send(path, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(
        Object.entries(form).filter(([, value]) => value !== undefined) as [string, string][],
      ),
    })
  return {
    id: client.id,
    thumbprint,
    proofFor,
    authenticated,
    /** Pushes a request. */
    async push(verifier: string, more: object = {}) {
      const request = on.requestOf(client.id, verifier)
      return post('/oauth/par', { ...request, ...(await authenticated()), ...more })
    },
    /** Pushes a request whose client is in the assertion alone. */
    async pushNameless() {
      const request = { ...on.requestOf(client.id, newVerifier()), ...(await authenticated()) }
      const { client_id: _, ...nameless } = request
      return post('/oauth/par', nameless)
    },
    async token(form: object, { assertion, proof }: { assertion?: Claims; proof?: string } = {}) {
      const headers: Record<string, string> = proof === undefined ? {} : { DPoP: proof }
      return post('/oauth/token', { ...form, ...(await authenticated(assertion)) }, headers)
    },
  }
}

describe('without the profile', () => {
  test('a request without client_id cannot be pushed', async () => {
    const { status, body } = await (await createBank()).pushNameless()
    expect([status, body.error, body.request_uri]).toEqual([400, 'invalid_request', undefined])
  })

  test('a request_uri can be opened again until the user decides, and gets one code', async () => {
    const bank = await createBank()
    const cookie = gateway.signIn({ subject: 'opens-twice' })
    const { body } = await bank.push(newVerifier())
    const query = { client_id: bank.id, request_uri: body.request_uri }
    const open = () => gateway.authorize(query, cookie)
    // The user may leave the page for a login, or load it again.
    const pages = [await open(), await open()]
    expect(pages.map(({ status }) => status)).toEqual([200, 200])
    const decided = await Promise.all(pages.map((page) => gateway.decide(page, cookie)))
    expect(decided.filter(({ answer }) => answer.has('code'))).toHaveLength(1)
    expect(await gateway.issuingNothing(open)).toMatchObject({ status: 400, location: null })
  })

  test('no visit of the login renews the life of a request_uri, which ends for good', async () => {
    const bank = await createBank()
    const cookie = gateway.signIn({ subject: 'logs-in-again' })
    const requests = async () => new Set(await gateway.redis.direct.keys(REQUESTS))
    const before = await requests()
    const { body } = await bank.push(newVerifier(), { prompt: 'login' })
    const [key = ''] = [...(await requests())].filter((name) => !before.has(name))
    const query = { client_id: bank.id, request_uri: body.request_uri }
    const visit = async () => (await gateway.authorize(query, cookie)).location ?? ''
    expect(await visit()).toMatch(/^\/oauth\/sign-in\?/)
    // Nine minutes later.
    expect(await gateway.redis.direct.ttl(key)).toBeGreaterThan(590)
    await gateway.redis.direct.expire(key, 60)
    for (const _ of [1, 2]) expect(await visit()).toMatch(/^\/oauth\/sign-in\?/)
    expect(await gateway.redis.direct.ttl(key)).toBeLessThanOrEqual(60)
    // The handle with which the browser comes back outlives the request, and gets no code.
    const returnTo = new URL(await visit(), PUBLIC_URL).searchParams.get('return_to') ?? ''
    await gateway.redis.direct.del(key)
    const page = await gateway.send(returnTo, { headers: { cookie } })
    expect(page.status).toBe(200)
    const { status, location } = await gateway.decide(page, cookie)
    expect([status, location?.includes('code=')]).toEqual([303, false])
  })

  test('a request_uri is used up by a refusal of the user', async () => {
    const bank = await createBank()
    const cookie = gateway.signIn({ subject: 'refuses' })
    const { body } = await bank.push(newVerifier())
    const query = { client_id: bank.id, request_uri: body.request_uri }
    const page = await gateway.authorize(query, cookie)
    const denied = await gateway.decide(page, cookie, 'deny')
    expect(denied.answer.get('error')).toBe('access_denied')
    expect(await gateway.authorize(query, cookie)).toMatchObject({ status: 400, location: null })
  })

  test.each([8, 9])('an assertion and a proof that are %i s ahead are valid', async (ahead) => {
    const bank = await createBank()
    const at = nowSeconds() + ahead
    const proof = await bank.proofFor('/oauth/token', { iat: at })
    const assertion = { iat: at, nbf: at, exp: at + 60 }
    const reply = await bank.token({ grant_type: 'client_credentials' }, { assertion, proof })
    expect([reply.status, reply.body.token_type]).toEqual([200, 'DPoP'])
  })

  test('an assertion and a proof that are a minute ahead are refused', async () => {
    const bank = await createBank()
    const at = nowSeconds() + 60
    const form = { grant_type: 'client_credentials' }
    const proof = await bank.proofFor('/oauth/token', { iat: at })
    expect((await bank.token(form, { proof })).body.error).toBe('invalid_dpop_proof')
    const early = await bank.token(form, { assertion: { nbf: at } })
    expect(early.body.error).toBe('invalid_client')
  })

  test('a refresh token of a confidential client is not bound to the key of its first request', async () => {
    const bank = await createBank()
    const verifier = newVerifier()
    const cookie = gateway.signIn({ subject: 'rotates' })
    const { body } = await bank.push(verifier)
    const query = { client_id: bank.id, request_uri: body.request_uri }
    const code = await gateway.codeFor(query, cookie)
    const redeemed = await bank.token(
      {
        grant_type: 'authorization_code',
        code,
        code_verifier: verifier,
        redirect_uri: REDIRECT_URI,
      },
      { proof: await bank.proofFor('/oauth/token') },
    )
    expect(redeemed.body.token_type).toBe('DPoP')
    const { proof, thumbprint } = await createProver()
    const other = await proof({
      ...{ htm: 'POST', htu: `${PUBLIC_URL}/oauth/token` },
      ...{ jti: crypto.randomUUID(), iat: nowSeconds() },
    })
    const refresh = { grant_type: 'refresh_token', refresh_token: redeemed.body.refresh_token }
    const refreshed = await bank.token(refresh, { proof: other })
    expect(refreshed.status).toBe(200)
    // The access token is bound to the key of the present proof.
    const [, payload = ''] = refreshed.body.access_token.split('.')
    const { cnf } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    expect(cnf).toEqual({ jkt: thumbprint })
  })
})

describe.each(['of the server', 'of the client'] as const)('the profile %s', (of) => {
  let fapi: CodeGateway
  const described: Partial<Described> = of === 'of the client' ? { profile: 'fapi2' } : {}
  beforeAll(async () => {
    fapi =
      of === 'of the client' ? gateway : await startCodeGateway({}, {}, [], { profile: 'fapi2' })
  })
  afterAll(async () => {
    if (fapi !== gateway) await fapi?.close()
  })
  const bankOf = () => createBank(fapi, described)

  test('a pushed request must name its redirect URI, although its client has no other', async () => {
    for (const redirect of [{ redirect_uri: undefined }, { redirect_uri: '' }]) {
      const { status, body } = await (await bankOf()).push(newVerifier(), redirect)
      expect([status, body.error]).toEqual([400, 'invalid_request'])
      expect((await (await createBank()).push(newVerifier(), redirect)).status).toBe(201)
    }
  })

  test('a request that was not pushed is refused before the login', async () => {
    const { id } = await bankOf()
    const request = fapi.requestOf(id, newVerifier())
    for (const cookie of [fapi.signIn(), undefined]) {
      const { answer, location } = await fapi.authorize(request, cookie)
      expect(location).toContain(REDIRECT_URI)
      expect([answer.get('error'), answer.get('iss')]).toEqual(['invalid_request', PUBLIC_URL])
      expect(answer.get('error_description')).toBe('Push the request first (RFC 9126).')
    }
  })

  test('a flow with a pushed request and proofs gets bound tokens', async () => {
    const bank = await bankOf()
    const verifier = newVerifier()
    const { body, status } = await bank.push(verifier)
    expect(status).toBe(201)
    const query = { client_id: bank.id, request_uri: body.request_uri }
    const code = await fapi.codeFor(query, fapi.signIn())
    const form = {
      ...{ grant_type: 'authorization_code', code, code_verifier: verifier },
      redirect_uri: REDIRECT_URI,
    }
    const unbound = await fapi.issuingNothing(() => bank.token(form))
    expect(unbound.body.error).toBe('invalid_dpop_proof')
    const { body: tokens } = await bank.token(form, { proof: await bank.proofFor('/oauth/token') })
    expect(tokens.token_type).toBe('DPoP')
    // A proof of another endpoint, method or time.
    const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }
    for (const claims of [{ htu: `${PUBLIC_URL}/oauth/par` }, { htm: 'GET' }, { iat: 1 }]) {
      const proof = await bank.proofFor('/oauth/token', claims)
      expect((await bank.token(refresh, { proof })).body.error).toBe('invalid_dpop_proof')
    }
    const none = await bank.token(refresh)
    expect(none.body.error).toBe('invalid_dpop_proof')
    const second = await bank.token(form, { proof: await bank.proofFor('/oauth/token') })
    expect(second.body.error).toBe('invalid_grant')
  })

  test('a refresh token stays the same, and each use gets another access token', async () => {
    const bank = await bankOf()
    const verifier = newVerifier()
    const { body } = await bank.push(verifier)
    const query = { client_id: bank.id, request_uri: body.request_uri }
    const code = await fapi.codeFor(query, fapi.signIn({ subject: crypto.randomUUID() }))
    const use = async (form: object) =>
      bank.token(form, { proof: await bank.proofFor('/oauth/token') })
    const { body: first } = await use({
      ...{ grant_type: 'authorization_code', code, code_verifier: verifier },
      redirect_uri: REDIRECT_URI,
    })
    const refresh = { grant_type: 'refresh_token', refresh_token: first.refresh_token }
    const replies = [await use(refresh), ...(await Promise.all([use(refresh), use(refresh)]))]
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(replies.map(({ body }) => body.refresh_token))).toEqual(
      new Set([first.refresh_token]),
    )
    const tokens = [first, ...replies.map(({ body }) => body)].map((body) => body.access_token)
    expect(new Set(tokens).size).toBe(4)
    // Long after the grace period of a rotation, it is still no reuse.
    const [family = ''] = await fapi.redis.direct.keys('pc:refresh:*')
    expect(family).not.toBe('')
    for (const key of await fapi.redis.direct.keys('pc:refresh:*'))
      await fapi.redis.direct.hset(key, 'rotated_ms', '1')
    expect((await use(refresh)).status).toBe(200)
    // Another token of the family is a forgery: it ends the session.
    const [name] = first.refresh_token.split('.')
    const forged = { ...refresh, refresh_token: `${name}.${'A'.repeat(43)}` }
    expect((await use(forged)).body.error).toBe('invalid_grant')
    expect((await use(refresh)).body.error).toBe('invalid_grant')
  })

  test.each([
    ['the token endpoint', { aud: `${PUBLIC_URL}/oauth/token` }],
    ['the pushed requests', { aud: `${PUBLIC_URL}/oauth/par` }],
    ['a list with the issuer', { aud: [PUBLIC_URL] }],
    ['another server', { aud: 'https://other.test' }],
    ['no audience', { aud: undefined }],
    ['no subject', { sub: undefined }],
    ['another issuer', { iss: 'https://other.test' }],
    ['an end five minutes ago', { iat: 1, exp: Math.floor(Date.now() / 1000) - 300 }],
  ])('an assertion for %s is refused', async (_, claims) => {
    const bank = await bankOf()
    const proof = await bank.proofFor('/oauth/token')
    const { body } = await bank.token(
      { grant_type: 'client_credentials' },
      { assertion: claims, proof },
    )
    expect(body.error).toMatch(/^invalid_(?:client|request)$/)
    expect(body.access_token).toBeUndefined()
  })

  test('an assertion with RS256 is refused, and one with PS256 is valid', async () => {
    const form = { grant_type: 'client_credentials' }
    const codes: unknown[] = []
    for (const alg of ['RS256', 'PS256']) {
      const bank = await createBank(fapi, described, alg)
      const proof = await bank.proofFor('/oauth/token')
      const { status, body } = await bank.token(form, { proof })
      codes.push([alg, status, body.error])
    }
    expect(codes).toEqual([
      ['RS256', 401, 'invalid_client'],
      ['PS256', 200, undefined],
    ])
  })

  test('an assertion is used once', async () => {
    const bank = await bankOf()
    const assertion = { jti: crypto.randomUUID() }
    const form = { grant_type: 'client_credentials' }
    const statuses = []
    for (const _ of [1, 2]) {
      const proof = await bank.proofFor('/oauth/token')
      statuses.push((await bank.token(form, { assertion, proof })).status)
    }
    expect(statuses).toEqual([200, 401])
  })

  test('a request of another client, and one with a mistake, cannot be used', async () => {
    const bank = await bankOf()
    const other = await bankOf()
    const { body } = await bank.push(newVerifier())
    const query = { client_id: other.id, request_uri: body.request_uri }
    expect(await fapi.authorize(query, fapi.signIn())).toMatchObject({
      status: 400,
      location: null,
    })
    for (const more of [
      { code_challenge_method: 'plain' },
      { redirect_uri: 'https://evil.test/' },
      { response_type: 'token' },
      { request_uri: body.request_uri },
    ])
      expect((await bank.push(newVerifier(), more)).status).toBe(400)
  })
})

describe('the profile of the server', () => {
  test('no document of a client is fetched', async () => {
    const fetched: string[] = []
    const fetchPublic: typeof fetch = async (input) => {
      fetched.push(String(input))
      return Response.error()
    }
    const fapi = await startCodeGateway({}, { fetchPublic }, [], { profile: 'fapi2' })
    try {
      const request = fapi.requestOf('https://client.example.com/client.json', newVerifier())
      const { status, location } = await fapi.authorize(request, fapi.signIn())
      expect([status, location, fetched]).toEqual([400, null, []])
    } finally {
      await fapi.close()
    }
  })

  test('its metadata says that requests must be pushed, and a secret or no credential is refused', async () => {
    const fapi = await startCodeGateway({}, {}, [], { profile: 'fapi2' })
    try {
      const { body } = await fapi.send('/.well-known/oauth-authorization-server')
      expect(body.require_pushed_authorization_requests).toBe(true)
      expect(body.client_id_metadata_document_supported).toBe(false)
      // Secrets stay, for clients that act for no user.
      for (const endpoint of ['token', 'revocation'])
        expect(body[`${endpoint}_endpoint_auth_methods_supported`]).toEqual([
          ...['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
        ])
      for (const endpoint of ['token', 'revocation', 'introspection'])
        expect(body[`${endpoint}_endpoint_auth_signing_alg_values_supported`]).toEqual([
          ...['ES256', 'Ed25519', 'EdDSA', 'PS256'],
        ])
      const described = { grants: ['authorization_code' as const], redirectUris: [REDIRECT_URI] }
      const { client, secret } = await fapi.registry.create({ name: 'web', ...described })
      const open = await fapi.createClient()
      for (const form of [{ client_id: client.id, client_secret: secret }, { client_id: open }]) {
        const request = { ...fapi.requestOf(form.client_id, newVerifier()), ...form }
        const pushed = await fapi.send('/oauth/par', {
          method: 'POST',
          body: new URLSearchParams(request as Record<string, string>),
        })
        expect([pushed.status, pushed.body.error]).toEqual([401, 'invalid_client'])
      }
      for (const grant of ['token-exchange', 'jwt-bearer'] as const) {
        const grantType = `urn:ietf:params:oauth:grant-type:${grant}` as const
        const grants = ['client_credentials' as const, grantType]
        const agent = await fapi.registry.create({ name: 'agent', grants })
        const secretly = await fapi.token({
          ...{ grant_type: grantType, client_id: agent.client.id, client_secret: agent.secret },
        })
        expect([secretly.status, secretly.body.error]).toEqual([401, 'invalid_client'])
        const bank = await createBank(fapi, { grants, redirectUris: undefined })
        const unbound = await bank.token({ grant_type: 'client_credentials' })
        expect([unbound.status, unbound.body.error]).toEqual([400, 'invalid_dpop_proof'])
      }
      // The command line of operators has a secret, and acts for no user.
      const operator = await fapi.registry.create({
        ...{ name: 'cli', grants: ['client_credentials'], roles: ['operator'] },
      })
      const token = await fapi.token({
        ...{ grant_type: 'client_credentials', client_id: operator.client.id },
        client_secret: operator.secret,
      })
      expect(token.status).toBe(200)
    } finally {
      await fapi.close()
    }
  })

  test('a profile that does not exist, and one without keys, are mistakes', async () => {
    expect(() => authorizationServer({ profile: 'fapi3' as never })).toThrow(/profile/)
    const described = { name: 'a', grants: ['client_credentials'], profile: 'fapi2' }
    expect(newClientSchema.safeParse(described).error?.issues[0]?.path).toEqual(['profile'])
  })

  test('a client with keys for RS256 alone is a mistake', async () => {
    const { publicKey } = await generateKeyPair('RS256', { extractable: true })
    const jwk = { ...(await exportJWK(publicKey)), kid: 'a' }
    const pathsFor = (...algs: (string | undefined)[]) => {
      const keys = algs.map((alg) => ({ ...jwk, ...(alg !== undefined && { alg }) }))
      const described = { name: 'a', grants: ['client_credentials'], profile: 'fapi2' }
      const { error } = newClientSchema.safeParse({ ...described, jwks: { keys } })
      return error?.issues.map(({ path, message }) => [...path, message])
    }
    const mistake = ['jwks', 'fapi2 needs a key for PS256, ES256 or Ed25519']
    expect(pathsFor('RS256')).toEqual([mistake])
    for (const algs of [['PS256'], ['RS256', 'PS256'], [undefined]])
      expect(pathsFor(...algs)).toBeUndefined()
  })
})
