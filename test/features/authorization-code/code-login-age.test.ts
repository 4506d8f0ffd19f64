/** What an authorization request demands of the login: only the provider can show that it is met. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SigningProvider, startSigningProvider } from '../sign-in/signing-provider.ts'
import { createUserAgent, type UserAgent } from '../sign-in/user-agent.ts'
import { challengeOf, newVerifier } from './code-gateway.ts'
import { startLoginGateway } from './login-gateway.ts'

const REDIRECT_URI = 'https://agent.example.org/cb'
const nowSeconds = () => Math.floor(Date.now() / 1000)

describe.each(['Node', 'workerd'] as const)('a demanded login on %s [S81]', (runtime) => {
  let gateway: Awaited<ReturnType<typeof startLoginGateway<SigningProvider>>>
  let browser: UserAgent
  let client = ''
  beforeAll(async () => {
    gateway = await startLoginGateway(runtime, startSigningProvider)
    const registered = await createUserAgent().send(`${gateway.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Agent', redirect_uris: [REDIRECT_URI] }),
    })
    client = ((await registered.json()) as { client_id: string }).client_id
  })
  afterAll(() => gateway?.close())
  beforeEach(() => {
    browser = createUserAgent()
    gateway.provider.reset()
    gateway.provider.requests.length = 0
  })

  const authorize = (demand: Record<string, string>) => {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: client,
      redirect_uri: REDIRECT_URI,
      code_challenge: challengeOf(newVerifier()),
      code_challenge_method: 'S256',
      resource: `${gateway.url}/mcp`,
      ...demand,
    })
    return browser.visit(
      `${gateway.url}/oauth/authorize?${query}`,
      /^https:\/\/agent\.example\.org/,
    )
  }
  const sentAge = () => gateway.provider.requests.at(-1)?.get('max_age')

  test('the page of the consent has the name of the account, not its subject', async () => {
    gateway.provider.answer.idToken = { name: 'Alice <b>' }
    const { text } = await authorize({ prompt: 'login' })
    expect(text).toContain('as <strong>Alice &lt;b&gt;</strong>.')
  })

  test.each<[string, Record<string, string>]>([
    ['max_age', { max_age: '60' }],
    ['prompt=login', { prompt: 'login' }],
    ['prompt=login and the choice of an account', { prompt: 'login select_account' }],
  ])('%s is met by auth_time, and by nothing else', async (_name, demand) => {
    gateway.provider.answer.idToken = { auth_time: nowSeconds() }
    expect((await authorize(demand)).text).toContain('Allow access?')
    expect(sentAge()).toMatch(/^\d+$/)
    for (const authTime of [
      undefined,
      null,
      String(nowSeconds()),
      Date.now(),
      nowSeconds() - 3_600,
    ]) {
      browser = createUserAgent()
      gateway.provider.answer.idToken = { auth_time: authTime }
      const visit = await authorize(demand)
      expect([authTime, visit.status]).toEqual([authTime, 403])
      expect(visit.path.at(-1)).toBe('/oauth/callback')
      expect(visit.text).not.toContain('Allow access?')
    }
  })

  test('a session of a login whose age is not known does not meet max_age either', async () => {
    gateway.provider.answer.idToken = { auth_time: undefined }
    expect((await authorize({})).text).toContain('Allow access?')
    expect((await authorize({ max_age: '3600' })).status).toBe(403)
    const quiet = await authorize({ max_age: '3600', prompt: 'none' })
    // The user has not allowed the client, which registered itself, so that the answer is a page.
    expect([quiet.status, quiet.text]).toEqual([400, expect.stringContaining('login_required')])
  })

  test('acr_values is met by acr, and by nothing else', async () => {
    gateway.provider.answer.idToken = { acr: 'pwd', amr: ['mfa'] }
    expect((await authorize({})).text).toContain('Allow access?')
    const visit = await authorize({ acr_values: 'phr mfa' })
    expect([visit.status, visit.path.at(-1)]).toEqual([403, '/oauth/callback'])
    expect(gateway.provider.requests.at(-1)?.get('acr_values')).toBe('phr mfa')
    gateway.provider.answer.idToken = { acr: 'mfa' }
    expect((await authorize({ acr_values: 'phr mfa' })).text).toContain('Allow access?')
    expect((await authorize({ acr_values: 'a"b' })).status).toBe(400)
  })

  test('the choice of an account demands no new login', async () => {
    gateway.provider.answer.idToken = { auth_time: undefined }
    const visit = await authorize({ prompt: 'select_account' })
    expect([visit.status, visit.text]).toEqual([200, expect.stringContaining('Allow access?')])
    expect(sentAge()).toBeNull()
  })
})
