/** Step-up for tokens (RFC 9470), through the gateway of a policy, with Redis and an origin. */
import { createHash } from 'node:crypto'
import { calculateJwkThumbprint, decodeJwt, importJWK, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { newApiKey } from '../../src/access/tokens/api-key.ts'
import { createReferenceStore } from '../../src/access/tokens/redis/references.ts'
import { credentialHash, type ReferenceRecord } from '../../src/access/tokens/reference.ts'
import type { Gateway } from '../../src/gateway/create-gateway.ts'
import type { RouteDefinition } from '../../src/policy/definition.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from '../harness/gateway.ts'
import { createKey } from '../harness/issuer.ts'

const RESOURCE = `${PUBLIC_URL}/.well-known/oauth-protected-resource`
const row = { method: 'GET', permission: 'pay:do', limits: ['standard'] } as const
const policy = definePolicy({
  roles: { payer: ['pay:do'] },
  limits: { standard: '1000/min' },
  routes: [
    { ...row, path: '/plain' },
    { ...row, path: '/strong', authentication: { acr: ['phr', 'mfa'] } },
    { ...row, path: '/recent', authentication: { maxAgeSeconds: 300 } },
    { ...row, path: '/both', authentication: { acr: ['mfa'], maxAgeSeconds: 300 } },
    { ...row, path: '/bound', dpop: true, authentication: { acr: ['mfa'] } },
  ],
})

let gateway: TestGateway
let app: Gateway
const nowSeconds = () => Math.floor(Date.now() / 1000)
/** The headers of the requests that reached the origin. */
const reached: Record<string, unknown>[] = []

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  gateway = await startGateway({
    policy,
    signs: true,
    origin: (request, response) => {
      reached.push(request.headers)
      response.end('{}')
    },
  })
  app = gateway.isolate()
})
afterAll(async () => {
  vi.useRealTimers()
  await gateway?.close()
})
beforeEach(() => {
  reached.length = 0
  gateway.events.length = 0
})

const send = async (path: string, token: string) =>
  app.fetch(new Request(PUBLIC_URL + path, { headers: { Authorization: `Bearer ${token}` } }))

const tokenWith = (claims: object) =>
  gateway.token({ claims: { sub: 'alice', roles: ['payer'], ...claims } })

/** Expects the refusal of a token, and returns its challenge. The origin must not be called. */
async function refused(path: string, claims: object, check: string): Promise<string | null> {
  const response = await send(path, await tokenWith(claims))
  expect([response.status, await response.json()]).toMatchObject([
    401,
    { code: 'insufficient_user_authentication' },
  ])
  expect([reached.length, gateway.events.at(-1)?.reason]).toEqual([
    0,
    `insufficient_user_authentication:${check}`,
  ])
  return response.headers.get('WWW-Authenticate')
}

describe('a token whose login is not as demanded', () => {
  test.each<readonly [string, unknown]>([
    ['absent', undefined],
    ['null', null],
    ['empty', ''],
    ['another class', 'pwd'],
    ['another case', 'MFA'],
    ['with a space', 'mfa '],
    ['a list of classes in one text', 'phr mfa'],
    ['a list', ['mfa']],
    ['an object', { mfa: true }],
    ['true', true],
    ['the place in the list', 1],
  ])('acr that is %s opens no route that demands one', async (_name, acr) => {
    expect(await refused('/strong', { acr, amr: ['mfa'], auth_time: nowSeconds() }, 'acr')).toBe(
      `Bearer realm="portcullis", error="insufficient_user_authentication", acr_values="phr mfa", resource_metadata="${RESOURCE}"`,
    )
  })

  test.each<readonly [string, () => unknown, string]>([
    ['absent', () => undefined, 'auth_time'],
    ['null', () => null, 'auth_time'],
    ['text', () => String(nowSeconds()), 'auth_time'],
    ['an RFC 3339 text', () => new Date().toISOString(), 'auth_time'],
    ['in milliseconds', () => Date.now(), 'auth_time'],
    ['in the future', () => nowSeconds() + 60, 'auth_time'],
    ['far in the future', () => 9e15, 'auth_time'],
    ['zero', () => 0, 'auth_time'],
    ['negative', () => -nowSeconds(), 'auth_time'],
    ['a list', () => [nowSeconds()], 'auth_time'],
    ['an object', () => ({ seconds: nowSeconds() }), 'auth_time'],
    ['true', () => true, 'auth_time'],
    ['one second too old', () => nowSeconds() - 301, 'auth_time_old'],
    ['of yesterday', () => nowSeconds() - 86_400, 'auth_time_old'],
    ['a small number', () => 1e-9, 'auth_time_old'],
  ])('auth_time that is %s opens no route with an age [S81]', async (_name, authTime, check) => {
    // The token is new: neither `iat` nor another claim takes the place of `auth_time`.
    const claims = { auth_time: authTime(), updated_at: nowSeconds(), acr: 'mfa' }
    expect(await refused('/recent', claims, check)).toContain(
      'error="insufficient_user_authentication", max_age=300, resource_metadata=',
    )
  })

  test('a challenge names both demands, and each alone is not enough', async () => {
    const challenge = expect.stringContaining('acr_values="mfa", max_age=300')
    expect(await refused('/both', { acr: 'mfa' }, 'auth_time')).toEqual(challenge)
    expect(await refused('/both', { auth_time: nowSeconds() }, 'acr')).toEqual(challenge)
  })

  test('a route that requires a proof of possession has a challenge for it', async () => {
    const { publicJwk, privateJwk } = await createKey('client')
    const { kid: _, use: _use, alg: _alg, ...jwk } = publicJwk
    const jkt = await calculateJwkThumbprint(jwk)
    const token = await tokenWith({ cnf: { jkt }, acr: 'pwd' })
    const proof = await new SignJWT({
      htm: 'GET',
      htu: `${PUBLIC_URL}/bound`,
      ath: createHash('sha256').update(token).digest('base64url'),
      jti: crypto.randomUUID(),
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .setIssuedAt(nowSeconds())
      .sign(await importJWK(privateJwk, 'ES256'))
    const headers = { Authorization: `DPoP ${token}`, DPoP: proof }
    const response = await app.fetch(new Request(`${PUBLIC_URL}/bound`, { headers }))
    expect([response.status, reached.length]).toEqual([401, 0])
    expect(response.headers.get('WWW-Authenticate')).toMatch(
      /^DPoP realm="portcullis", error="insufficient_user_authentication", acr_values="mfa"/,
    )
  })
})

describe('a token whose login is as demanded', () => {
  test('opens the route, and the origin gets the login in headers and in the assertion', async () => {
    const login = { acr: 'mfa', amr: ['otp', 'a,b'], auth_time: nowSeconds() - 299 }
    const response = await send('/both', await tokenWith(login))
    expect(response.status).toBe(200)
    expect(reached).toMatchObject([
      {
        'x-auth-acr': 'mfa',
        'x-auth-amr': 'otp,a%2Cb',
        'x-auth-time': String(login.auth_time),
      },
    ])
    expect(decodeJwt(String(reached[0]?.['x-auth-assertion']))).toMatchObject(login)
  })

  test('of a clock that is 3 s ahead opens the route, and the origin gets no time of the future', async () => {
    const token = await tokenWith({ auth_time: nowSeconds() + 3 })
    expect((await send('/recent', token)).status).toBe(200)
    expect(reached).toMatchObject([{ 'x-auth-time': String(nowSeconds()) }])
  })

  test('a cached token is refused as soon as its login is too old', async () => {
    const token = await tokenWith({ auth_time: nowSeconds() - 290 })
    expect((await send('/recent', token)).status).toBe(200)
    vi.setSystemTime(Date.now() + 10_000)
    expect((await send('/recent', token)).status).toBe(200)
    vi.setSystemTime(Date.now() + 1_000)
    const response = await send('/recent', token)
    expect([response.status, reached.length]).toEqual([401, 2])
    expect((await send('/plain', token)).status).toBe(200)
  })

  test('a client sends none of the headers itself', async () => {
    const response = await send('/plain', await tokenWith({}))
    expect(response.status).toBe(200)
    expect(Object.keys(reached[0] ?? {}).filter((name) => /acr|amr|time/.test(name))).toEqual([])
  })
})

describe('credentials without a login', () => {
  async function reference(kind: 'api_key' | 'opaque', text: string, more: object = {}) {
    const record: ReferenceRecord = {
      kind,
      tokenId: crypto.randomUUID(),
      tokenIssuer: PUBLIC_URL,
      issuer: PUBLIC_URL,
      subject: 'dave',
      roles: ['payer'],
      scopes: [],
      audiences: [PUBLIC_URL],
      issuedAtSeconds: nowSeconds(),
      expiresAtSeconds: kind === 'api_key' ? null : nowSeconds() + 600,
      ...more,
    }
    const store = createReferenceStore(createRedisRest({ ...gateway.redis, timeoutMs: 5_000 }))
    await store.put(await credentialHash(text), record)
    return text
  }

  test.each(['/strong', '/recent'])('an API key opens %s never', async (path) => {
    const apiKey = await reference('api_key', newApiKey())
    // At first, `admit` identifies the key. Then this isolate has cached it.
    for (const _ of [1, 2]) {
      const response = await send(path, apiKey)
      expect([response.status, reached.length]).toEqual([401, 0])
      expect(await response.json()).toMatchObject({ code: 'insufficient_user_authentication' })
    }
    expect((await send('/plain', apiKey)).status).toBe(200)
  })

  test('an opaque token of the gateway has the login of its record', async () => {
    const without = await reference('opaque', crypto.randomUUID())
    expect((await send('/strong', without)).status).toBe(401)
    const login = { acr: 'phr', authTimeSeconds: nowSeconds() }
    const opaque = await reference('opaque', crypto.randomUUID(), { login })
    expect([(await send('/strong', opaque)).status, reached.length]).toEqual([200, 1])
  })
})

describe('the policy', () => {
  type Row = Partial<RouteDefinition<never>>
  const define = (more: Row) =>
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/', permission: 'a:b', ...more } as RouteDefinition<never>],
    })

  test.each<readonly [RegExp, Row]>([
    [/routes\[0\]\.authentication\.acr/, { authentication: { acr: [] } }],
    [/routes\[0\]\.authentication\.acr\[0\]/, { authentication: { acr: ['a"b'] } }],
    [/routes\[0\]\.authentication\.acr\[0\]/, { authentication: { acr: ['a b'] } }],
    [/routes\[0\]\.authentication\.maxAgeSeconds/, { authentication: { maxAgeSeconds: -1 } }],
    [/routes\[0\]\.authentication\.maxAgeSeconds/, { authentication: { maxAgeSeconds: 1.5 } }],
    [/authentication: Unrecognized key: "maxAge"/, { authentication: { maxAge: 1 } } as object],
    [
      /GET \/: authentication cannot be combined with anonymous/,
      { permission: undefined, anonymous: true, authentication: { acr: ['mfa'] } } as never,
    ],
  ])('refuses at the start: %s', (mistake, more) => {
    expect(() => define(more)).toThrow(mistake)
  })

  test('a route without a demand has none, also with an empty one', () => {
    expect(define({ authentication: {} }).routes[0]?.authentication).toBeUndefined()
    expect(define({}).routes[0]?.authentication).toBeUndefined()
  })
})
