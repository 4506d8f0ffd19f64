/** What an authorization request demands of the login: only the provider can show that it is met. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SigningProvider, startSigningProvider } from '../sign-in/signing-provider.ts'
import { createUserAgent, type UserAgent } from '../sign-in/user-agent.ts'
import { challengeOf, newVerifier } from './code-gateway.ts'
import { OWN_CLIENT, startLoginGateway } from './login-gateway.ts'

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
  /** Returns the status and the target of the response to a request without a session. */
  async function redirectFor(parameters: Record<string, string>) {
    const query = new URLSearchParams({
      response_type: 'code',
      code_challenge: challengeOf(newVerifier()),
      code_challenge_method: 'S256',
      ...parameters,
    })
    const url = `${gateway.url}/oauth/authorize?${query}`
    const headers = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
    const response = await fetch(url, { redirect: 'manual', headers })
    return { status: response.status, location: response.headers.get('location') ?? '' }
  }

  test('acr_values of a client that registered itself has no budget of an address', async () => {
    const request = { client_id: client, redirect_uri: REDIRECT_URI, acr_values: 'mfa' }
    const statuses = new Set<number>()
    for (let at = 0; at < 61; at++) statuses.add((await redirectFor(request)).status)
    expect([...statuses]).toEqual([303])
  })

  test('requests of an operator client may demand as many logins as the sign-in admits', async () => {
    const [redirect_uri = ''] = OWN_CLIENT.redirectUris
    const request = { client_id: OWN_CLIENT.id, redirect_uri, acr_values: 'mfa' }
    const statuses = new Set<number>()
    for (let at = 0; at < 61; at++) statuses.add((await redirectFor(request)).status)
    expect([...statuses]).toEqual([303])
  })

  test('only a request with a demand lets an unmet login return', async () => {
    const [redirect_uri = ''] = OWN_CLIENT.redirectUris
    const request = { client_id: OWN_CLIENT.id, redirect_uri }
    expect((await redirectFor(request)).location).not.toContain('unmet')
    expect((await redirectFor({ ...request, acr_values: 'mfa' })).location).toContain('unmet')
  })

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

  test.each<[string, string, string | null]>([
    ['de-AT en', 'de', 'de-AT en'],
    ['fr', 'en', 'fr'],
    ['<b> de_AT ../de "en de', 'de', 'de'],
    [`de${' x'.repeat(300)}`, 'en', null],
  ])(
    'ui_locales %j chooses the language of the consent page, and is sent to the provider',
    async (locales, tag, sent) => {
      const { text } = await authorize({ ui_locales: locales })
      expect(text).toContain(`<html lang="${tag}">`)
      expect(text).toContain('name="decision"')
      expect(gateway.provider.requests.at(-1)?.get('ui_locales')).toBe(sent)
    },
  )

  test('the page for a malformed query has the language of its ui_locales', async () => {
    const { status, text } = await authorize({ ui_locales: 'de', x: '\u0000' })
    expect([status, text.includes('<html lang="de">')]).toEqual([400, true])
  })

  describe('of a client that an operator has registered', () => {
    const PARAMETERS = () => ({
      response_type: 'code',
      client_id: OWN_CLIENT.id,
      redirect_uri: OWN_CLIENT.redirectUris[0] ?? '',
      code_challenge: challengeOf(newVerifier()),
      code_challenge_method: 'S256',
      state: 'st',
    })
    const visit = (query: Record<string, string>) =>
      browser.visit(
        `${gateway.url}/oauth/authorize?${new URLSearchParams(query)}`,
        /^https:\/\/bank\.example\.org/,
      )
    const requestOf = (demand: Record<string, string>) => visit({ ...PARAMETERS(), ...demand })
    async function push(demand: Record<string, string>) {
      const response = await createUserAgent().send(`${gateway.url}/oauth/par`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: String(new URLSearchParams({ ...PARAMETERS(), ...demand })),
      })
      const { request_uri = '' } = (await response.json()) as { request_uri?: string }
      return visit({ client_id: OWN_CLIENT.id, request_uri })
    }
    const essential = (members: object) =>
      JSON.stringify({ id_token: { acr: { essential: true, ...members } } })
    const answerOf = ({ url }: { readonly url: string }) => {
      const query = new URL(url).searchParams
      return [query.get('error'), query.get('state'), query.get('iss'), query.get('code')]
    }
    const UNMET = () => ['unmet_authentication_requirements', 'st', gateway.url, null]

    test.each<[string, Record<string, string>]>([
      ['acr_values', { acr_values: 'phr mfa' }],
      ['an essential acr', { claims: essential({ values: ['phr', 'mfa'] }) }],
      ['an essential acr with one value', { claims: essential({ value: 'mfa' }) }],
      ['max_age', { max_age: '60' }],
    ])('%s that no login meets is an error for the client, and no code', async (_name, demand) => {
      const weak = { acr: 'pwd', auth_time: nowSeconds() - 3_600 }
      gateway.provider.answer.idToken = weak
      for (const send of [requestOf, push]) {
        browser = createUserAgent()
        // With a session of a weaker login, and without one.
        expect((await authorize({})).text).toContain('Allow access?')
        const logins = gateway.provider.requests.length
        expect(answerOf(await send(demand))).toEqual(UNMET())
        expect(gateway.provider.requests.length).toBe(logins + 1)
        browser = createUserAgent()
        expect(answerOf(await send(demand))).toEqual(UNMET())
        gateway.provider.answer.idToken = { acr: 'mfa', auth_time: nowSeconds() }
        expect((await send(demand)).text).toContain('Allow access?')
        const quiet = await send({ ...demand, prompt: 'none', acr_values: 'phr' })
        expect(answerOf(quiet)[0]).toBe('claims' in demand ? 'consent_required' : 'login_required')
        gateway.provider.answer.idToken = weak
      }
    })

    test('a provider that cannot meet acr_values says so itself', async () => {
      gateway.provider.answer.authorization = { error: 'unmet_authentication_requirements' }
      expect(answerOf(await requestOf({ acr_values: 'phr' }))).toEqual(UNMET())
    })

    test('other claims are ignored, and text that is no claims request is refused', async () => {
      gateway.provider.answer.idToken = { acr: 'pwd' }
      const voluntary = { id_token: { acr: { values: ['phr'] }, email: { essential: true } } }
      expect((await requestOf({ claims: JSON.stringify(voluntary) })).text).toContain('Allow')
      const refused = [
        ...['{', '[]', 'null', '"acr"', essential({ values: [1] })],
        // A demand that no login could meet, or that has two readings.
        ...[essential({ values: [] }), essential({ value: 'mfa', values: [] })],
        ...[essential({ value: 'mfa', values: ['pwd'] }), essential({ value: '' })],
        '{"id_token":{"acr":{"essential":true,"value":"mfa"}},"id_token":{}}',
        '{"id_token":{"acr":{"essential":true,"value":"mfa","essential":false}}}',
      ]
      for (const claims of refused)
        expect([claims, answerOf(await requestOf({ claims }))[0]]).toEqual([
          claims,
          'invalid_request',
        ])
    })

    test('the mark of a login that did not meet a demand has no effect on another request', async () => {
      gateway.provider.answer.idToken = { acr: 'mfa' }
      const page = await requestOf({ acr_values: 'mfa', login_unmet: '1' })
      expect(page.text).toContain('Allow access?')
    })
  })

  test('the choice of an account demands no new login', async () => {
    gateway.provider.answer.idToken = { auth_time: undefined }
    const visit = await authorize({ prompt: 'select_account' })
    expect([visit.status, visit.text]).toEqual([200, expect.stringContaining('Allow access?')])
    expect(sentAge()).toBeNull()
  })
})
