/** The callback: one for each provider, used twice, after a refusal, and for a user who signs in again. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

describe.each(RUNTIMES)('two providers that do not name themselves, on %s', (runtime) => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let honest: SigningProvider
  let evil: SigningProvider
  let browser: UserAgent
  beforeAll(async () => {
    honest = await startSigningProvider()
    evil = await startSigningProvider()
    gateway = await startGatewayFor(
      [
        { provider: honest, name: 'Honest' },
        { provider: evil, name: 'Evil' },
      ],
      { runtime },
    )
  })
  afterAll(async () => {
    await gateway?.close()
    await honest?.close()
    await evil?.close()
  })
  beforeEach(() => {
    browser = createUserAgent()
    for (const provider of [honest, evil]) {
      provider.reset()
      provider.requests.length = 0
      provider.redirectUris.length = 0
    }
    gateway.reached.length = 0
  })
  const callback = /\/oauth\/callback/
  const signIn = (at: SigningProvider, until?: RegExp, path = '/orders/7?limit=3') => {
    const query = new URLSearchParams({ return_to: path, iss: at.issuer })
    return browser.visit(`${gateway.url}/oauth/sign-in?${query}`, until)
  }
  const session = () => browser.jarOf(gateway.url).get(SESSION_COOKIE)

  test('each has a callback of its own, in the request and in the exchange [S89]', async () => {
    for (const provider of [honest, evil]) expect((await signIn(provider)).status).toBe(200)
    const uris = [honest, evil].map(({ requests }) => requests[0]?.get('redirect_uri'))
    expect(new Set(uris).size).toBe(2)
    for (const uri of uris) expect(uri).toMatch(/\/oauth\/callback\/127-0-0-1-\d+$/)
    expect([honest.redirectUris, evil.redirectUris].flat()).toEqual(uris)
  })

  test('the response of one provider does not complete a login at the other [S89]', async () => {
    const atHonest = new URL((await signIn(honest, callback)).url)
    const atEvil = new URL((await signIn(evil, callback)).url)
    // The evil provider has sent the browser to the honest one, with the state of its own login.
    const mixed = new URL(atHonest)
    mixed.searchParams.set('state', atEvil.searchParams.get('state') ?? '')
    const visit = await browser.visit(mixed.href)
    expect([visit.status, visit.text]).toEqual([400, expect.stringContaining('callback')])
    expect(session()).toBeUndefined()
    // The code did not go to the evil provider.
    expect(evil.redirectUris).toEqual([])
    for (const path of ['/oauth/callback', '/oauth/callback/other', `${atHonest.pathname}/`]) {
      const other = new URL((await signIn(honest, callback)).url)
      expect([
        path,
        (await browser.visit(new URL(path + other.search, gateway.url).href)).status,
      ]).not.toEqual([path, 200])
      expect(session()).toBeUndefined()
    }
  })

  test('a used callback of a signed-in browser goes on to its page', async () => {
    const used = (await signIn(honest, callback)).url
    expect((await browser.visit(used)).url).toBe(`${gateway.url}/orders/7?limit=3`)
    const before = session()
    for (const _ of ['back', 'reload']) {
      const visit = await browser.visit(used)
      expect([visit.status, visit.url]).toEqual([200, `${gateway.url}/orders/7?limit=3`])
    }
    expect(session()).toBe(before)
    expect(honest.redirectUris).toHaveLength(1)
    // A callback without a login leads to the first page.
    const unknown = new URL(used)
    unknown.searchParams.set('state', `${'A'.repeat(42)}A`)
    expect((await browser.visit(unknown.href)).url).toBe(`${gateway.url}/`)
    // Another browser gets nothing.
    const other = createUserAgent()
    expect((await other.visit(used)).status).toBe(400)
    expect(other.jarOf(gateway.url).get(SESSION_COOKIE)).toBeUndefined()
  })

  test('a browser that has signed out gets a page, and no session', async () => {
    const used = (await signIn(honest, callback)).url
    await browser.visit(used)
    browser.jarOf(gateway.url).delete(SESSION_COOKIE)
    const visit = await browser.visit(used)
    expect([visit.status, visit.text]).toEqual([400, expect.stringContaining('has expired')])
    expect(visit.text).toContain('return_to=%2Forders%2F7%3Flimit%3D3')
    expect(session()).toBeUndefined()
  })

  test.each([
    ['access_denied', 403, 'canceled'],
    ['invalid_scope', 400, 'invalid_scope'],
    ['unauthorized_client', 400, 'unauthorized_client'],
    ['login_required', 400, 'login_required'],
    ['interaction_required', 400, 'interaction_required'],
  ])(
    'the error %s of a provider is named, and the page that the user wanted is kept',
    async (error, status, text) => {
      honest.answer.authorization = { error }
      const visit = await signIn(honest)
      expect([visit.status, visit.text]).toEqual([status, expect.stringContaining(text)])
      expect(visit.text).not.toContain('has expired')
      const isOperators = /invalid_scope|unauthorized_client/.test(error)
      if (isOperators) expect(visit.text).toContain('operator')
      else expect(visit.text).toContain('return_to=%2Forders%2F7%3Flimit%3D3')
    },
  )

  test('a user who is signed in and must sign in again is not asked to choose, and is hinted', async () => {
    honest.answer.idToken = { preferred_username: 'alice@example.com' }
    await signIn(honest)
    honest.answer.idToken = { acr: 'mfa', preferred_username: 'alice@example.com' }
    const visit = await browser.visit(`${gateway.url}/strong`)
    expect([visit.status, visit.path[2]]).toEqual([200, '/auth'])
    expect(honest.requests.at(-1)?.get('login_hint')).toBe('alice@example.com')
    // A new browser, and a user who wants another account, choose.
    expect((await createUserAgent().visit(`${gateway.url}/strong`)).text).toContain('Choose')
    const other = await browser.visit(`${gateway.url}/oauth/sign-in?prompt=select_account`)
    expect(other.text).toContain('Choose')
    await signIn(evil)
    expect(evil.requests.at(-1)?.get('login_hint')).toBeNull()
  })
})

test.each([
  ['announces iss', {}, { authorization_response_iss_parameter_supported: true }, false],
  ['has the option to keep the old one', { callback: 'shared' }, {}, false],
  [
    'has the option for its own',
    { callback: 'own' },
    { authorization_response_iss_parameter_supported: true },
    true,
  ],
])('of several providers, one that %s', async (_name, signIn, metadata, isOwn) => {
  const provider = await startSigningProvider()
  const other = await startSigningProvider()
  Object.assign(provider.answer, { metadata, authorization: { iss: provider.issuer } })
  const gateway = await startGatewayFor([
    { provider, name: 'Example', signIn },
    { provider: other, name: 'Other' },
  ])
  const query = new URLSearchParams({ return_to: '/orders', iss: provider.issuer })
  const visit = await createUserAgent().visit(`${gateway.url}/oauth/sign-in?${query}`)
  expect(visit.status).toBe(200)
  expect(provider.requests[0]?.get('redirect_uri')?.endsWith('/oauth/callback')).toBe(!isOwn)
  await Promise.all([gateway.close(), provider.close(), other.close()])
})
