/** Responses of an issuer that verifies its tokens: what is accepted, refused, or an outage. */
import { jwtVerify } from 'jose'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { introspection } from '../../../src/features/introspection/index.ts'
import { createSigner } from '../../access/tokens/signer.ts'
import { type ProviderGateway, startProviderGateway } from '../../identity-providers/gateway.ts'
import {
  type Answer,
  CLIENT,
  clientsFor,
  hanging,
  type IntrospectionProvider,
  json,
  startIntrospectionProvider,
} from './provider.ts'

const UNDECIDED_MS = 3_000
const REFUSED_MS = 10_000
const TOKEN = 'opaque-token'

let provider: IntrospectionProvider
let gateway: ProviderGateway | undefined
beforeEach(async () => {
  provider = await startIntrospectionProvider()
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await gateway?.close()
  gateway = undefined
  await provider.close()
})

async function start(entry: object = {}, client: object = {}): Promise<ProviderGateway> {
  const { issuer } = provider
  const settings = 'userinfo' in entry ? {} : { introspection: {} }
  const environment = 'userinfo' in entry ? {} : clientsFor(issuer, client)
  gateway = await startProviderGateway([{ issuer, audience: 'orders', ...settings, ...entry }], {
    features: [introspection()],
    environment,
  })
  return gateway
}

const seconds = () => Math.floor(Date.now() / 1000)

describe('a token that the issuer confirms', () => {
  test.each<[string, object, string]>([
    ['with the claims of a reader', {}, '200'],
    ['with an expiry', { exp: 4_000_000_000 }, '401 token_rejected:lifetime'],
    ['that has expired', { exp: 1_000 }, '401 token_rejected:exp'],
    ['that is not valid yet', { nbf: 4_000_000_000 }, '401 token_rejected:nbf'],
    ['that was issued in the future', { iat: 4_000_000_000 }, '401 token_rejected:iat'],
    ['of another issuer', { iss: 'https://other.example.com' }, '401 token_rejected:iss'],
    ['for another audience', { aud: 'payments' }, '401 token_rejected:aud'],
    ['without an audience', { aud: undefined }, '401 token_rejected:aud'],
    ['without a subject', { sub: undefined }, '401 token_rejected:sub'],
    ['without the role', { roles: ['guest'] }, '403 permission_missing:orders:read'],
    ['with the type Bearer', { token_type: 'Bearer' }, '200'],
    ['with another type', { token_type: 'mac' }, '401 token_rejected:token_type'],
    ['that is a refresh token', { typ: 'Refresh' }, '401 token_rejected:refused_claim'],
    ['with the type DPoP without a key', { token_type: 'DPoP' }, '401 token_rejected:token_type'],
    [
      'that is bound to a certificate',
      { cnf: { 'x5t#S256': 'A'.repeat(43) } },
      '401 token_rejected:cnf',
    ],
    [
      'that is bound to a key, without a proof',
      { token_type: 'DPoP', cnf: { jkt: 'A'.repeat(43) } },
      '401 token_rejected:dpop_binding',
    ],
  ])('%s', async (name, claims, outcome) => {
    // Without `iat`, the life of a token is not known; with it, it is limited.
    const dated = name === 'with an expiry' ? { iat: seconds() } : {}
    provider.answer = json({ ...provider.claims, ...dated, ...claims })
    expect(await (await start()).outcomeOf(TOKEN)).toBe(outcome)
    expect(provider.calls).toHaveLength(1)
  })

  test('is accepted until its own expiry, if that is before maxAgeSeconds', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { outcomeOf } = await start({ clockTolerance: 0 })
    provider.answer = json({ ...provider.claims, exp: seconds() + 20 })
    expect(await outcomeOf(TOKEN)).toBe('200')
    vi.setSystemTime(Date.now() + 19_000)
    expect(await outcomeOf(TOKEN)).toBe('200')
    expect(provider.calls).toHaveLength(1)
    vi.setSystemTime(Date.now() + 2_000)
    expect(await outcomeOf(TOKEN)).toBe('401 token_rejected:exp')
    expect(provider.calls).toHaveLength(2)
  })
})

describe('an outage of the issuer is 503', () => {
  const text =
    (body: string, status: number, headers: Record<string, string> = {}): Answer =>
    (response) =>
      response.writeHead(status, headers).end(body)

  test.each<[string, Answer, string]>([
    ['HTML', text('<h1>Welcome</h1>', 200), 'malformed'],
    ['an empty body', text('', 200), 'malformed'],
    ['no member active', json({ sub: 'alice' }), 'malformed'],
    ['active as text', json({ active: 'true', sub: 'alice' }), 'malformed'],
    ['an array', json([{ active: true }]), 'malformed'],
    ['a member twice', text('{"active":false,"active":true}', 200), 'malformed'],
    ['100 KB', json({ active: true, text: 'x'.repeat(100_000) }), 'malformed'],
    ['401 for the client', json({ error: 'invalid_client' }, 401), 'refused'],
    ['a limit', text('', 429, { 'retry-after': '60' }), 'refused'],
    ['an error page', text('<h1>Oops</h1>', 500), 'refused'],
    ['a redirect', text('', 302, { location: '/elsewhere' }), 'refused'],
    ['a closed connection', (response) => response.destroy(), 'unreachable'],
    ['silence', hanging, 'timeout'],
  ])('%s', async (_, answer, fault) => {
    provider.answer = answer
    const { outcomeOf, send } = await start()
    expect(await outcomeOf(TOKEN)).toBe(`503 introspection:${fault}`)
    provider.answer = json(provider.claims)
    const { status } = await send(TOKEN)
    expect(status, 'a failure is not cached').toBe(200)
    expect(provider.calls).toHaveLength(2)
  })

  test('no earlier response replaces one that fails', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { outcomeOf, send } = await start({ introspection: { maxAgeSeconds: 5 } })
    provider.answer = json(provider.claims)
    expect(await outcomeOf(TOKEN)).toBe('200')
    provider.answer = json({}, 500)
    vi.setSystemTime(Date.now() + 5_000)
    expect(await outcomeOf(TOKEN)).toBe('503 introspection:refused')
    const refusal = await send('other-token')
    expect([refusal.status, refusal.headers.get('retry-after')]).toEqual([503, '5'])
  })
})

test.each([null, ''])('members of a response that are %j are absent', async (empty) => {
  const { outcomeOf } = await start()
  const absent = ['iss', 'scope', 'client_id', 'sid', 'tenant', 'roles', 'nbf', 'jti', 'token_type']
  for (const name of [...absent, 'exp', 'iat']) {
    provider.answer = json({
      ...provider.claims,
      [name]: empty,
      ...(name === 'roles' && { scope: 'orders:read' }),
    })
    expect([name, await outcomeOf(`${TOKEN}-${name}`)]).toEqual([name, '200'])
  }
  for (const name of ['sub', 'aud']) {
    provider.answer = json({ ...provider.claims, [name]: empty })
    const check = `401 token_rejected:${name}`
    expect([name, await outcomeOf(`${TOKEN}-${name}`)]).toEqual([name, check])
  }
  provider.answer = json({ ...provider.claims, scope: ' orders:read  x ' })
  expect(await outcomeOf(`${TOKEN}-parts`)).toBe('200')
  provider.answer = json({ ...provider.claims, token_type: 'DPoP', cnf: null })
  expect(await outcomeOf(`${TOKEN}-unbound`)).toBe('401 token_rejected:token_type')
  provider.answer = json({ ...provider.claims, cnf: null })
  expect(await outcomeOf(`${TOKEN}-bearer`)).toBe('200')
})

describe('a refusal of one token is not an outage for others', () => {
  const refusal =
    (status: number, body: object | string = '', headers: Record<string, string> = {}): Answer =>
    (response) =>
      response
        .writeHead(status, headers)
        .end(typeof body === 'string' ? body : JSON.stringify(body))
  const TOKEN_REFUSED = '401 token_rejected:inactive'
  const UNDECIDED = '503 introspection:refused'
  const UNREADABLE = '503 introspection:malformed'
  const userinfo = { userinfo: { audience: 'any' } }

  test.each<[string, object, Answer, string]>([
    ['userinfo 400', userinfo, refusal(400), TOKEN_REFUSED],
    [
      'userinfo 400 with an error',
      userinfo,
      refusal(400, { error: 'invalid_request' }),
      TOKEN_REFUSED,
    ],
    ['userinfo 403 without a challenge', userinfo, refusal(403), TOKEN_REFUSED],
    ['userinfo 403 as a page', userinfo, refusal(403, '<h1>Forbidden</h1>'), TOKEN_REFUSED],
    ['userinfo 422', userinfo, refusal(422), TOKEN_REFUSED],
    ['userinfo 431', userinfo, refusal(431), TOKEN_REFUSED],
    ['userinfo 404', userinfo, refusal(404), UNDECIDED],
    ['introspection 400', {}, refusal(400), TOKEN_REFUSED],
    [
      'introspection 400 with a type',
      {},
      refusal(400, { error: 'unsupported_token_type' }),
      TOKEN_REFUSED,
    ],
    [
      'introspection 401 for the token',
      {},
      refusal(401, { error: 'invalid_token' }),
      TOKEN_REFUSED,
    ],
    ['introspection 403', {}, refusal(403, '<h1>Forbidden</h1>'), UNDECIDED],
    [
      'introspection 200 with an error',
      {},
      refusal(200, { error: 'invalid_token', active: null }),
      TOKEN_REFUSED,
    ],
    ['introspection 200 with another error', {}, refusal(200, { error: 'oops' }), UNDECIDED],
    [
      'introspection 200 with too many claims',
      {},
      refusal(200, { active: true, groups: 'x'.repeat(100_000) }),
      UNREADABLE,
    ],
    ['introspection 200 as text', {}, refusal(200, 'Error: unknown token'), UNREADABLE],
    ['userinfo 200 with too many claims', userinfo, refusal(200, 'x'.repeat(100_000)), UNREADABLE],
    ['userinfo 200 without a body', userinfo, refusal(200), UNREADABLE],
    ['introspection 404', {}, refusal(404), UNDECIDED],
    [
      'userinfo 403 as a page about a quota',
      userinfo,
      refusal(403, '<h1>Too many words: quota, rate limit</h1>'),
      TOKEN_REFUSED,
    ],
    [
      'userinfo 403 with a description of a limit',
      userinfo,
      refusal(403, { error: 'insufficient_scope', error_description: 'needs quota:read' }),
      TOKEN_REFUSED,
    ],
    [
      'introspection 403 with the text of the token',
      {},
      refusal(403, { message: 'opaque-quota is unknown' }),
      UNDECIDED,
    ],
    [
      'userinfo 403 with a long error',
      userinfo,
      refusal(403, { error: `${'x'.repeat(500)}quota` }),
      TOKEN_REFUSED,
    ],
  ])('%s', async (_, entry, answer, outcome) => {
    const { outcomeOf } = await start(entry)
    provider.answer = answer
    for (let n = 0; n < 7; n++) expect(await outcomeOf(`${TOKEN}-${n}`)).toBe(outcome)
    expect(provider.calls).toHaveLength(7)
    provider.answer = json(provider.claims)
    expect(await outcomeOf(TOKEN)).toBe('200')
  })

  test.each<[string, object, Answer]>([
    ['userinfo 429', userinfo, refusal(429)],
    [
      'userinfo 403 for a limit',
      userinfo,
      refusal(403, { error: { reason: 'rateLimitExceeded' } }),
    ],
    ['userinfo 400 with Retry-After', userinfo, refusal(400, '', { 'retry-after': '5' })],
    ['userinfo 500', userinfo, refusal(500)],
    ['introspection 401 for the client', {}, refusal(401, { error: 'invalid_client' })],
    ['introspection 400 for the client', {}, refusal(400, { error: 'invalid_client' })],
    ['introspection 429', {}, refusal(429)],
    ['introspection 200 for the client', {}, refusal(200, { error: 'invalid_client' })],
  ])('but %s is an outage, and opens the breaker', async (_, entry, answer) => {
    const { outcomeOf } = await start(entry)
    provider.answer = answer
    for (let n = 0; n < 7; n++)
      expect(await outcomeOf(`${TOKEN}-${n}`)).toBe('503 introspection:refused')
    expect(provider.calls.length).toBeLessThan(7)
  })
})

test.each<[string, object, object]>([
  ['404', {}, { status: 404 }],
  ['403', {}, { status: 403 }],
  ['userinfo 404', { userinfo: { audience: 'any' } }, { status: 404 }],
])(
  'a token that %s does not decide is 503 without a call for 3 seconds, and is then accepted',
  async (_, entry, answer) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { outcomeOf } = await start(entry)
    const { status } = answer as { status: number }
    provider.answer = (response) => response.writeHead(status).end()
    for (let n = 0; n < 5; n++) expect(await outcomeOf(TOKEN)).toBe('503 introspection:refused')
    expect(provider.calls).toHaveLength(1)
    provider.answer = json(provider.claims)
    expect(await outcomeOf(`${TOKEN}-other`)).toBe('200')
    vi.setSystemTime(Date.now() + UNDECIDED_MS)
    expect(await outcomeOf(TOKEN)).toBe('200')
  },
)

test('an inactive token is refused without a call for 10 seconds', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const { outcomeOf } = await start()
  for (let n = 0; n < 3; n++) expect(await outcomeOf(TOKEN)).toBe('401 token_rejected:inactive')
  expect(provider.calls).toHaveLength(1)
  vi.setSystemTime(Date.now() + REFUSED_MS)
  provider.answer = json(provider.claims)
  expect(await outcomeOf(TOKEN)).toBe('200')
  expect(provider.calls).toHaveLength(2)
})

test('a cached token costs no call and one Redis round trip', async () => {
  provider.answer = json(provider.claims)
  const { outcomeOf, redis } = await start()
  expect(await outcomeOf(TOKEN)).toBe('200')
  const before = redis.calls()
  expect(await outcomeOf(TOKEN)).toBe('200')
  expect(redis.calls() - before).toBe(1)
  expect(provider.calls).toHaveLength(1)
})

describe('a revocation by the gateway applies to the next request', () => {
  test('of the subject, also to a token without jti and iat, and also after a new call', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    provider.answer = json(provider.claims)
    const { outcomeOf, revocations } = await start()
    expect(await outcomeOf(TOKEN)).toBe('200')
    const { issuer } = provider
    await revocations.revokeBefore({
      kind: 'subject',
      issuer,
      value: 'alice',
      atSeconds: seconds(),
      ttlSeconds: 3_600,
    })
    expect(await outcomeOf(TOKEN)).toBe('401 token_revoked:subject')
    vi.setSystemTime(Date.now() + 61_000)
    expect(await outcomeOf(TOKEN)).toBe('401 token_revoked:subject')
    expect(provider.calls).toHaveLength(2)
  })
})

describe('the client of the gateway', () => {
  const [form] = [{ token: TOKEN, token_type_hint: 'access_token' }]

  test('authenticates with client_secret_basic, encoded as RFC 6749 says', async () => {
    provider.answer = json(provider.claims)
    await (await start()).outcomeOf(TOKEN)
    const encoded = 'orders+api:a%3Asecret%2Bwith+spaces+%26+100%25'
    expect(provider.calls).toEqual([
      { path: '/introspect', authorization: `Basic ${btoa(encoded)}`, form },
    ])
  })

  test('authenticates with client_secret_post', async () => {
    provider.answer = json(provider.claims)
    await (await start({}, { method: 'client_secret_post' })).outcomeOf(TOKEN)
    const { id, secret } = CLIENT
    expect(provider.calls).toEqual([
      {
        path: '/introspect',
        authorization: undefined,
        form: { ...form, client_id: id, client_secret: secret },
      },
    ])
  })

  test('authenticates with private_key_jwt', async () => {
    const { privateJwk, publicJwk } = await createSigner('ES256')
    provider.answer = json(provider.claims)
    const client = { secret: undefined, key: { ...privateJwk, kid: 'k1' } }
    await (await start({}, client)).outcomeOf(TOKEN)
    const [call] = provider.calls
    const { payload, protectedHeader } = await jwtVerify(
      call?.form.client_assertion ?? '',
      publicJwk,
    )
    expect(protectedHeader).toMatchObject({ alg: 'ES256', kid: 'k1' })
    expect(payload).toMatchObject({ iss: CLIENT.id, sub: CLIENT.id, aud: provider.issuer })
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60)
    expect(payload.jti).toBeDefined()
    expect(call?.authorization).toBeUndefined()
  })
})

test('neither the token, nor the secret, nor a response of the issuer is in any output', async () => {
  const output: unknown[] = []
  for (const method of ['log', 'warn', 'error', 'info', 'debug'] as const)
    vi.spyOn(console, method).mockImplementation((...args) => void output.push(args))
  const { send, events } = await start()
  const answers = [
    json({ active: false, note: 'provider-text' }),
    json({ error: 'provider-text' }, 401),
    json({ ...provider.claims, aud: 'other', note: 'provider-text' }),
  ]
  for (const [n, answer] of answers.entries()) {
    provider.answer = answer
    const response = await send(`${TOKEN}-${n}`)
    output.push([...response.headers], await response.text())
  }
  expect(provider.calls).toHaveLength(3)
  const all = JSON.stringify([output, events])
  expect(all).toContain('token_rejected')
  for (const text of [TOKEN, CLIENT.secret, 'provider-text']) expect(all).not.toContain(text)
})

test('with form "jwt", the issuer verifies a JWT that names it, and its keys are not fetched', async () => {
  const { outcomeOf } = await start({ introspection: { form: 'jwt' } })
  const token = await (await createSigner('ES256')).token({ iss: provider.issuer })
  provider.answer = json(provider.claims)
  expect(await outcomeOf(token)).toBe('200')
  expect(provider.calls.map(({ path }) => path)).toEqual(['/introspect'])
})

describe('userinfo', () => {
  const entry = { userinfo: { audience: 'any' } }

  test('is called with the token, and does not need an audience or an expiry', async () => {
    provider.answer = json({ sub: 'alice', roles: ['reader'] })
    expect(await (await start(entry)).outcomeOf(TOKEN)).toBe('200')
    expect(provider.calls).toEqual([
      { path: '/userinfo', authorization: `Bearer ${TOKEN}`, form: {} },
    ])
  })

  test.each<[string, Answer, string]>([
    ['401', json({}, 401), '401 token_rejected:inactive'],
    [
      '403 for a missing scope',
      (response) =>
        response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope"' }).end(),
      '401 token_rejected:inactive',
    ],
    ['another 403', json({ error: 'rateLimitExceeded' }, 403), '503 introspection:refused'],
    ['no subject', json({ roles: ['reader'] }), '401 token_rejected:sub'],
    ['another audience', json({ sub: 'alice', aud: 'other' }), '401 token_rejected:aud'],
    ['a signed response', (response) => response.end('eyJ.eyJ.sig'), '503 introspection:malformed'],
  ])('%s', async (_, answer, outcome) => {
    provider.answer = answer
    expect(await (await start(entry)).outcomeOf(TOKEN)).toBe(outcome)
    expect(provider.calls).toHaveLength(1)
  })
})

describe('a token that cannot be of the issuer is refused without a call', () => {
  test.each<[string, string, string]>([
    ['with another prefix', 'other.token', 'segments'],
    ['with a character that no token has', 'idp.to"ken', 'segments'],
    ['that is too long', `idp.${'x'.repeat(17_000)}`, 'length'],
    ['that has the form of an API key', `pk_${'0'.repeat(49)}`, 'api_key_checksum'],
  ])('%s', async (_, token, check) => {
    const { outcomeOf } = await start({ introspection: { tokenPrefix: 'idp.' } })
    expect(await outcomeOf(token)).toBe(`401 token_rejected:${check}`)
    expect(provider.calls).toHaveLength(0)
  })

  test('from a source of another issuer', async () => {
    const other = { issuer: 'https://other.example.com', audience: 'orders' }
    const { issuer } = provider
    gateway = await startProviderGateway(
      [
        { issuer, audience: 'orders', introspection: {} },
        { ...other, jwksUri: 'http://127.0.0.1:9', tokenSources: [{ header: 'X-Token' }] },
      ],
      { features: [introspection()], environment: clientsFor(issuer) },
    )
    provider.answer = json(provider.claims)
    const outcome = await gateway.outcomeOf(TOKEN, { header: 'X-Token' })
    expect(outcome).toBe('401 token_rejected:segments')
    expect(provider.calls).toHaveLength(0)
    expect(await gateway.outcomeOf(TOKEN)).toBe('200')
  })
})
