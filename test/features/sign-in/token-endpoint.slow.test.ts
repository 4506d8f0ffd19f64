/** What the token endpoints of providers answer, at a login and at a refresh of a session. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

describe.each(RUNTIMES)('the token endpoint of a provider, on %s', (runtime) => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  let browser: UserAgent
  beforeAll(async () => {
    provider = await startSigningProvider()
    const signIn = { require: { groups: 'staff' } }
    gateway = await startGatewayFor([{ provider, name: 'Example', signIn }], { runtime })
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
  })
  beforeEach(() => {
    browser = createUserAgent()
    provider.reset()
    provider.answer.idToken = { groups: ['staff'] }
    gateway.reached.length = 0
  })
  const login = () => {
    const query = new URLSearchParams({ return_to: '/orders', iss: provider.issuer })
    return browser.visit(`${gateway.url}/oauth/sign-in?${query}`)
  }

  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['no access token', { access_token: undefined }],
    ['no token type', { token_type: undefined }],
    ['another token type', { token_type: 'N_A' }],
    ['a life as text', { expires_in: '3600' }],
    ['a negative life', { expires_in: -1 }],
    ['a life that is no number', { expires_in: 'never' }],
    ['a life as an object', { expires_in: {} }],
    ['a life without end', { expires_in: 1e300, refresh_token: 'r' }],
    ['a refresh token that is false', { refresh_token: false }],
  ])('may send %s, which no login needs', async (_, token) => {
    provider.answer.token = token
    expect((await login()).status).toBe(200)
    expect(gateway.reached).toHaveLength(1)
  })

  test.each<[string, SigningProvider['answer']['response'], number]>([
    ['a limit', { status: 429, headers: { 'retry-after': '5' }, body: '' }, 503],
    ['a limit with an error', { status: 429, body: '{"error":"slow_down"}' }, 503],
    ['a page', { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>Busy' }, 503],
    ['a page with status 404', { status: 404, body: '<p>Not here' }, 503],
    ['a redirect', { status: 302, headers: { location: '/elsewhere' }, body: '' }, 503],
    ['half a document', { status: 200, body: '{"id_token":' }, 503],
    ['a name twice', { status: 400, body: '{"error":"x","error":"invalid_grant"}' }, 503],
    ['a refused code', { status: 400, body: '{"error":"invalid_grant"}' }, 400],
    ['a refused code with status 200', { status: 200, body: '{"error":"invalid_grant"}' }, 400],
  ])('ends a login with the right cause for %s', async (_, response, status) => {
    provider.answer.response = response
    expect((await login()).status).toBe(status)
    expect(gateway.reached).toHaveLength(0)
  })

  const invalid = (error: string, status = 400) => ({ status, body: JSON.stringify({ error }) })

  type Answer = Partial<SigningProvider['answer']>
  const withNonce = (nonce: string): Answer => ({ idToken: { groups: ['staff'], nonce } })

  test.each<[string, Answer | ((nonce: string) => Answer), number]>([
    ['the new ID token has another nonce than the login', withNonce('other'), 401],
    ['the new ID token has the nonce of the login', withNonce, 200],
    ['the new ID token has an empty nonce', withNonce(''), 200],
    ['the user must interact', { response: invalid('interaction_required') }, 401],
    ['the user must sign in', { response: invalid('login_required') }, 401],
    ['the grant is refused with status 200', { response: invalid('invalid_grant', 200) }, 401],
    ['the user no longer has a required claim', { idToken: { groups: ['guests'] } }, 401],
    ['a required claim is absent', { idToken: {} }, 401],
    ['the provider is busy', { response: { status: 429, body: '' } }, 200],
    ['the client is refused', { response: invalid('invalid_client') }, 200],
    ['the new ID token has a key that is not published', { header: { kid: 'other' } }, 200],
  ])('decides about a session at its refresh: %s', async (_, answer, expected) => {
    provider.answer.token = { refresh_token: 'r', expires_in: 1 }
    await login()
    const nonce = provider.requests.at(-1)?.get('nonce') ?? ''
    Object.assign(provider.answer, typeof answer === 'function' ? answer(nonce) : answer)
    const cookie = `${SESSION_COOKIE}=${browser.jarOf(gateway.url).get(SESSION_COOKIE)}`
    const status = async () =>
      (await browser.send(`${gateway.url}/orders`, { headers: { cookie } })).status
    const exchanges = provider.redirectUris.length
    const isDecided = async () =>
      (await status()) === 401 || (expected === 200 && provider.redirectUris.length > exchanges)
    for (let n = 0; n < 2_000 && !(await isDecided()); n++)
      await new Promise((done) => setTimeout(done, 20))
    for (let n = 0; n < 10 && (await status()) === 200; n++)
      await new Promise((done) => setTimeout(done, 20))
    expect(await status()).toBe(expected)
  })
})
