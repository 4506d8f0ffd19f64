/** Several providers, clocks that differ, and mistakes of the configuration. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../../src/errors.ts'
import { introspection } from '../../../src/features/introspection/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { createProvider, type Provider } from '../../../src/features/sign-in/provider.ts'
import { formatStyle } from '../../../src/features/sign-in/rendering/page-theme.ts'
import { signInClientSchema } from '../../../src/features/sign-in/schema.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { composeServices, type GatewayEnv } from '../../../src/gateway/compose-services.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { issuers } from '../../../src/validators/issuer.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey, type TestKey } from '../../harness/issuer.ts'
import { type SignInGateway, startGateway } from './gateway.ts'
import { policyFor } from './policy.ts'
import { startProvider, type TestProvider } from './provider.ts'
import { createUserAgent } from './user-agent.ts'

describe('two providers [S76]', () => {
  let gateway: SignInGateway
  let other: TestProvider
  beforeAll(async () => {
    gateway = await startGateway({
      async more(url) {
        other = await startProvider(url)
        return [{ provider: other, name: '<b>Other & Sons</b>' }]
      },
    })
  })
  afterAll(async () => {
    await gateway?.close()
    await other?.close()
  })
  const callback = /\/oauth\/callback/

  test('the user chooses, and names are shown as text', async () => {
    const browser = createUserAgent()
    const page = await browser.visit(`${gateway.url}/orders?limit=1`)
    expect(page.text).toContain('&lt;b&gt;Other &amp; Sons&lt;/b&gt;')
    const [, first = '', second = ''] = page.text.split('class="choice" href="')
    for (const [link, subject] of [
      [first, 'alice'],
      [second, 'bob'],
    ] as const) {
      const provider = link === first ? gateway.provider : other
      provider.user.subject = subject
      const href = link.slice(0, link.indexOf('"')).replaceAll('&amp;', '&')
      const visit = await createUserAgent().visit(new URL(href, gateway.url).href)
      expect([visit.url, visit.text]).toEqual([
        `${gateway.url}/orders?limit=1`,
        expect.stringContaining(`"subject":"${subject}"`),
      ])
    }
  })

  test('an unknown provider, and a repeated parameter, are refused', async () => {
    const browser = createUserAgent()
    for (const query of [
      'iss=https://evil.example',
      'iss=&return_to=/',
      'return_to=/a&return_to=/b',
      'max_age=-1',
      'max_age=1e9',
      'prompt=none',
      'acr_values=a%0d%0ab',
    ])
      expect([
        query,
        (await browser.visit(`${gateway.url}/oauth/sign-in?${query}`)).status,
      ]).toEqual([query, 400])
  })

  test('mix-up: the response of one provider does not complete the login at the other', async () => {
    const browser = createUserAgent()
    const start = (issuer: string) =>
      browser.visit(
        `${gateway.url}/oauth/sign-in?${new URLSearchParams({ iss: issuer, return_to: '/orders' })}`,
        callback,
      )
    const honest = new URL((await start(gateway.provider.issuer)).url)
    const attacked = new URL((await start(other.issuer)).url)
    // The code of the honest provider, with the state of the login at the other one.
    for (const iss of [gateway.provider.issuer, other.issuer]) {
      attacked.searchParams.set('code', honest.searchParams.get('code') ?? '')
      attacked.searchParams.set('iss', iss)
      expect((await browser.visit(attacked.href)).status).toBe(400)
    }
    expect(browser.jarOf(gateway.url).get(SESSION_COOKIE)).toBeUndefined()
  })
})

describe('an ID token', () => {
  const nowSeconds = Math.floor(Date.now() / 1000)
  let server: TestServer
  let key: TestKey
  let provider: Provider
  /** Claims and signature of the ID token that the provider returns. */
  let answer: { claims: Record<string, unknown>; signedBy?: TestKey; alg?: string }

  beforeAll(async () => {
    key = await createKey('idp')
    server = await startHttpServer(async (request, response) => {
      const path = (request.url ?? '').replace(/\?.*/, '')
      response.setHeader('content-type', 'application/json')
      const metadata = {
        issuer: server.url,
        authorization_endpoint: `${server.url}/auth`,
        token_endpoint: `${server.url}/token`,
        jwks_uri: `${server.url}/jwks`,
        id_token_signing_alg_values_supported: ['ES256'],
      }
      if (path === '/.well-known/openid-configuration') response.end(JSON.stringify(metadata))
      else if (path === '/jwks') response.end(JSON.stringify({ keys: [key.publicJwk] }))
      else
        response.end(
          JSON.stringify({
            access_token: 'x',
            token_type: 'Bearer',
            id_token: await idToken(),
          }),
        )
    })
    const [issuer] = issuers.parse([
      { issuer: server.url, audience: 'api', algorithms: ['ES256'], require: { hd: 'a' } },
    ])
    if (issuer === undefined) throw new Error('no issuer')
    provider = createProvider({
      client: { issuer: server.url, id: 'gateway', secret: 's', method: 'client_secret_basic' },
      settings: { name: 'Example', scope: 'openid' },
      issuer,
      publicUrl: 'https://gateway.example',
      isOnly: true,
      signedOutUri: 'https://gateway.example/oauth/signed-out',
      // Claims are relative to this time, however late a test runs.
      now: () => nowSeconds * 1_000,
    })
  })
  afterAll(() => server?.close())
  beforeEach(() => {
    answer = { claims: {} }
  })

  async function idToken(): Promise<string> {
    const { SignJWT, importJWK } = await import('jose')
    const claims = {
      iss: server.url,
      aud: 'gateway',
      sub: 'alice',
      iat: nowSeconds,
      exp: nowSeconds + 60,
      auth_time: nowSeconds,
      nonce: 'nonce',
      hd: 'a',
      ...answer.claims,
    }
    return new SignJWT(JSON.parse(JSON.stringify(claims)))
      .setProtectedHeader({ alg: 'ES256', kid: 'idp' })
      .sign(await importJWK((answer.signedBy ?? key).privateJwk, 'ES256'))
  }
  const complete = (maxAgeSeconds?: number) =>
    provider.complete(new URLSearchParams({ code: 'x', state: 'state' }), {
      state: 'state',
      nonce: 'nonce',
      verifier: 'v'.repeat(43),
      callbackPath: '/oauth/callback',
      maxAgeSeconds,
    })

  test('is accepted with clocks that differ by less than the tolerance', async () => {
    answer.claims = { iat: nowSeconds + 4, exp: nowSeconds + 64 }
    expect((await complete()).providerSubject).toBe('alice')
    answer.claims = { iat: nowSeconds - 64, exp: nowSeconds - 1 }
    expect((await complete()).providerSubject).toBe('alice')
  })

  test.each([{ aud: ['gateway', 'gateway'] }, { aud: ['other', 'gateway'], azp: 'gateway' }])(
    'for this client is accepted: %j',
    async (claims) => {
      answer.claims = claims
      expect((await complete()).providerSubject).toBe('alice')
    },
  )

  test.each<[string, Record<string, unknown>]>([
    ['from the future', { iat: nowSeconds + 100, exp: nowSeconds + 160 }],
    ['that has expired', { iat: nowSeconds - 100, exp: nowSeconds - 30 }],
    ['with another nonce', { nonce: 'other' }],
    ['without a nonce', { nonce: undefined }],
    ['for another client', { aud: 'other' }],
    ['of another issuer', { iss: 'https://evil.example' }],
    ['for several clients without azp', { aud: ['gateway', 'other'] }],
    ['without a subject', { sub: undefined }],
    ['of an account that the rules of the issuer exclude', { hd: 'b' }],
  ])('%s is refused', async (_name, claims) => {
    answer.claims = claims
    await expect(complete()).rejects.toMatchObject({ denial: { code: 'sign_in_refused' } })
  })

  test('with the signature of another key is refused', async () => {
    answer.signedBy = await createKey('idp')
    await expect(complete()).rejects.toMatchObject({
      denial: { check: 'id_token_signature' },
    })
  })

  test('of an older login than demanded is refused', async () => {
    answer.claims = { auth_time: nowSeconds - 1_000 }
    await expect(complete(60)).rejects.toMatchObject({ denial: { code: 'sign_in_refused' } })
    answer.claims = { auth_time: undefined }
    await expect(complete(60)).rejects.toMatchObject({ denial: { code: 'sign_in_refused' } })
  })
})

describe('mistakes are named', () => {
  const environment = {
    UPSTASH_REDIS_REST_URL: 'https://redis.example',
    UPSTASH_REDIS_REST_TOKEN: 'x',
    PUBLIC_URL: 'https://gateway.example',
    ORIGIN_URL: 'https://origin.example',
    ISSUERS: '[{"issuer":"https://idp.example","audience":"api"}]',
  }
  const clients = (fields: object) =>
    JSON.stringify([{ issuer: 'https://idp.example', id: 'gateway', secret: 's', ...fields }])
  const compose = (more: object) => () =>
    composeServices({ ...environment, ...more } as unknown as GatewayEnv, policyFor(), WORKERS)

  test('in the environment', () => {
    expect(compose({})).toThrow(/ISSUER_CLIENTS: no client has signIn/)
    expect(compose({ ISSUER_CLIENTS: clients({ signIn: {} }) })).toThrow(
      /ISSUER_CLIENTS\S*0\S*signIn\.name/,
    )
    expect(compose({ ISSUER_CLIENTS: clients({ signIn: { name: 'x', scope: 'email' } }) })).toThrow(
      /scope: must contain openid/,
    )
    expect(compose({ ISSUER_CLIENTS: clients({ signIn: { name: 'x' } }) })).not.toThrow()
  })

  test('and a requested scope has one space between its names', () => {
    const { scope } = signInClientSchema.parse({ name: 'x', scope: ' openid  email ' })
    expect(scope).toBe('openid email')
    expect(signInClientSchema.safeParse({ name: 'x', scope: '  ' }).success).toBe(false)
  })

  test('of a client of GitHub with a key, which GitHub does not accept', async () => {
    const { privateJwk } = await createKey('client')
    const key = { ...privateJwk, alg: 'ES256' }
    const signIn = { name: 'x', preset: 'github' }
    expect(compose({ ISSUER_CLIENTS: clients({ signIn }) })).not.toThrow()
    expect(compose({ ISSUER_CLIENTS: clients({ signIn, secret: undefined, key }) })).toThrow(
      'ISSUER_CLIENTS[0].key: GitHub does not accept keys of clients; set secret',
    )
  })

  test('of an issuer without a key set, whose ID tokens could not be verified', () => {
    const entry = { issuer: 'https://idp.example', audience: 'api', keySet: 'none' }
    const env = {
      ...environment,
      ISSUERS: JSON.stringify([{ ...entry, introspection: {} }]),
      ISSUER_CLIENTS: clients({ signIn: { name: 'x' } }),
    } as unknown as GatewayEnv
    const both = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: {},
      features: [signIn(), introspection()],
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    })
    expect(() => composeServices(env, both, WORKERS)).toThrow(
      'ISSUER_CLIENTS[0].signIn: requires keys for ID tokens; remove keySet from the entry of https://idp.example in ISSUERS',
    )
  })

  const policy =
    (route: object, features = [signIn()]) =>
    () =>
      definePolicy({
        roles: { reader: ['orders:read'] },
        limits: {},
        features,
        routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', ...route }],
      })
  test.each<[RegExp, () => unknown]>([
    [/routes\[0\]\.session: needs signIn\(\)/, policy({ session: 'browser' }, [])],
    [/session: /, policy({ session: 'cookie' })],
    [/session\.acr/, policy({ session: { acr: [] } })],
    [/session\.acr/, policy({ session: { acr: ['a"b'] } })],
    [/cannot be combined with dpop/, policy({ session: 'browser', dpop: true })],
    [/reserved for the sign-in/, policy({ path: '/oauth/callback' })],
    [/idleSeconds/, () => signIn({ idleSeconds: 5 })],
    [
      /must not be longer than absoluteSeconds/,
      () => signIn({ idleSeconds: 900, absoluteSeconds: 600 }),
    ],
    [/theme/, () => signIn({ theme: { accent: 'red;}</style><script>' } })],
    [/must not load anything/, () => signIn({ theme: { background: 'url(x)' } })],
    [/branding\.logo/, () => signIn({ branding: { logo: 'https://cdn.example/logo.svg' } })],
    [/branding\.logo/, () => signIn({ branding: { logo: '//cdn.example/logo.svg' } })],
    [/branding\.logo/, () => signIn({ branding: { logo: 'data:text/html;base64,PGI+' } })],
    [/branding\.links\.terms/, () => signIn({ branding: { links: { terms: 'javascript:a' } } })],
    [/branding\.name/, () => signIn({ branding: { name: 'x'.repeat(81) } })],
  ])('%s', (message, create) => {
    expect(create).toThrow(Misconfigured)
    expect(create).toThrow(message)
  })
})

test.each([
  [{}, true],
  [{ radius: '2px' }, true],
  [{ accent: '#333' }, false],
  [{ background: 'white' }, false],
  [{ text: 'black' }, false],
])('a theme with a color of its own has no light button in the dark: %j', (theme, isLight) => {
  expect(formatStyle(theme).includes('#8ab8ff')).toBe(isLight)
})
