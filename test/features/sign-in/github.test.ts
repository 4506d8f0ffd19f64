/** Sign-in at GitHub, with a stand-in that sends the answers of GitHub's documentation. */
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startHttpServer } from '../../harness/http-server.ts'
import { createKey, mint } from '../../harness/issuer.ts'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { createUserAgent } from './user-agent.ts'

const EMAILS = [
  { email: 'old@example.com', verified: true, primary: false, visibility: null },
  { email: 'octocat@github.com', verified: true, primary: true, visibility: 'private' },
]

/** https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps */
async function startGitHub() {
  const client = { id: 'Iv1.8a61f9b3a7aba766', secret: randomBytes(20).toString('hex') }
  const answer: { user: unknown; emails: unknown; token: object; status: number } = {
    user: {},
    emails: [],
    token: {},
    status: 200,
  }
  const requests: { path: string; headers: NodeJS.Dict<string | string[]> }[] = []
  const challenges = new Map<string, string>()
  const server = await startHttpServer(async (request, response) => {
    const url = new URL(request.url ?? '/', server.url)
    requests.push({ path: url.pathname, headers: request.headers })
    if (url.pathname === '/login/oauth/authorize') {
      const code = randomBytes(10).toString('hex')
      challenges.set(code, url.searchParams.get('code_challenge') ?? '')
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      back.searchParams.set('code', code)
      back.searchParams.set('state', url.searchParams.get('state') ?? '')
      return response.writeHead(302, { location: back.href }).end()
    }
    let body = ''
    for await (const chunk of request) body += chunk
    response.setHeader('content-type', 'application/json; charset=utf-8')
    if (url.pathname === '/login/oauth/access_token') {
      const form = new URLSearchParams(body)
      const verifier = createHash('sha256').update(form.get('code_verifier') ?? '')
      const isGood =
        form.get('client_secret') === client.secret &&
        challenges.get(form.get('code') ?? '') === verifier.digest('base64url')
      const good = {
        access_token: 'gho_16C7e42F',
        scope: 'read:user,user:email',
        token_type: 'bearer',
      }
      // Errors have status 200 as well.
      return response.end(
        JSON.stringify(isGood ? { ...good, ...answer.token } : { error: 'bad_verification_code' }),
      )
    }
    const isUser = request.headers.authorization === 'Bearer gho_16C7e42F'
    const isNamed = request.headers['user-agent'] !== undefined
    response.writeHead(isUser && isNamed ? answer.status : 401)
    if (url.pathname === '/api/v3/user') return response.end(JSON.stringify(answer.user))
    if (url.pathname === '/api/v3/user/emails') return response.end(JSON.stringify(answer.emails))
    return response.end('{"message":"Not Found"}')
  })
  return { issuer: server.url, client, answer, requests, close: () => server.close() }
}

describe.each(RUNTIMES)('sign-in at GitHub, on %s', (runtime) => {
  let github: Awaited<ReturnType<typeof startGitHub>>
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  beforeAll(async () => {
    github = await startGitHub()
    gateway = await startGatewayFor(
      [
        {
          provider: { ...github, credentials: { ...github.client, method: 'client_secret_post' } },
          name: 'GitHub',
          entry: {
            rolesClaim: [['email'], ['sub']],
            rolesMap: { '*@github.com': 'reader', '4217': 'auditor' },
          },
          signIn: { preset: 'github' },
        },
      ],
      { runtime },
    )
  })
  afterAll(async () => {
    await gateway?.close()
    await github?.close()
  })
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    Object.assign(github.answer, {
      user: { login: 'octocat', id: 583_231, node_id: 'MDQ6VXNlcjE=', name: null, email: null },
      emails: EMAILS,
      token: {},
      status: 200,
    })
    github.requests.length = 0
    gateway.reached.length = 0
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })

  const visit = () => createUserAgent().visit(`${gateway.url}/orders`)

  test('a user signs in: the id is the subject, and the verified primary address counts', async () => {
    const page = await visit()
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('"subject":"583231"')])
    expect(github.requests.map(({ path }) => path).sort()).toEqual([
      '/api/v3/user',
      '/api/v3/user/emails',
      '/login/oauth/access_token',
      '/login/oauth/authorize',
    ])
  })

  test.each<readonly [string, unknown]>([
    ['not verified', [{ email: 'a@github.com', verified: false, primary: true }]],
    ['not primary', [{ email: 'a@github.com', verified: true, primary: false }]],
    ['verified as a text', [{ email: 'a@github.com', verified: 'true', primary: true }]],
    ['absent', []],
  ])(
    'an address that is %s gives no role, nor does the public one of the profile',
    async (_name, emails) => {
      github.answer.user = { login: 'octocat', id: 1, email: 'a@github.com' }
      github.answer.emails = emails
      expect([(await visit()).status, gateway.reached.length]).toEqual([403, 0])
    },
  )

  test('the number of an account gives it a role, and its login name gives none', async () => {
    github.answer.emails = []
    github.answer.user = { login: 'someone', id: 4_217 }
    const page = await createUserAgent().visit(`${gateway.url}/audit`)
    expect([page.status, gateway.reached.length]).toEqual([200, 1])
    github.answer.user = { login: '4217', id: 4_218 }
    const other = await createUserAgent().visit(`${gateway.url}/audit`)
    expect([other.status, gateway.reached.length]).toEqual([403, 1])
  })

  describe('an answer that GitHub does not document', () => {
    test.each<readonly [string, Partial<typeof github.answer>, number]>([
      ['a user without an id', { user: { login: 'octocat' } }, 503],
      ['an id as a text', { user: { login: 'octocat', id: '1' } }, 503],
      ['addresses that are no list', { emails: { message: 'x' } }, 503],
      ['an exhausted limit of the API', { status: 403 }, 503],
      ['an outage', { status: 502 }, 503],
      ['a refused access token', { status: 401 }, 400],
      ['no access token', { token: { access_token: undefined } }, 400],
    ])('signs no user in: %s', async (_name, answer, status) => {
      Object.assign(github.answer, answer)
      expect([(await visit()).status, gateway.reached.length]).toEqual([status, 0])
    })
  })

  test('a code without its verifier signs no user in', async () => {
    const browser = createUserAgent()
    const start = await browser.send(`${gateway.url}/oauth/sign-in?return_to=%2Forders`)
    const state = new URL(start.headers.get('location') ?? '').searchParams.get('state')
    const query = new URLSearchParams({ code: 'of-another-login', state: state ?? '' })
    const response = await browser.send(`${gateway.url}/oauth/callback?${query}`)
    expect([response.status, gateway.reached.length]).toEqual([400, 0])
  })

  test('a route that demands a kind or an age of the login stays closed', async () => {
    const browser = createUserAgent()
    expect((await browser.visit(`${gateway.url}/orders`)).status).toBe(200)
    for (const path of ['/strong', '/recent'])
      expect([path, (await browser.visit(gateway.url + path)).status]).toEqual([path, 403])
    expect(gateway.reached.map(({ url }) => url)).toEqual(['/orders'])
  })

  test.each<readonly [string, object, string]>([
    ['the name', { name: 'Mona & Lisa' }, 'Mona &amp; Lisa'],
    ['without a name, the login', { name: null }, 'octocat'],
  ])('the page of a refusal has %s of the account, not its number', async (_what, user, shown) => {
    github.answer.user = { login: 'octocat', id: 583_231, ...user }
    const browser = createUserAgent()
    await browser.visit(`${gateway.url}/orders`)
    const { status, text } = await browser.visit(`${gateway.url}/audit`)
    expect([status, gateway.reached.length]).toEqual([403, 1])
    expect(text).toContain(`You are signed in as <strong>${shown}</strong>.`)
    expect(text).not.toContain('583231')
  })

  describe('GitHub has no key set', () => {
    test('the gateway is ready, with no breaker of keys, and never looks for them', async () => {
      const response = await fetch(`${gateway.url}/-/readyz`)
      const text = await response.text()
      expect([response.status, text]).toEqual([200, expect.stringContaining('"keySets":"ok"')])
      expect(text).not.toContain('key_set')
      expect(github.requests).toEqual([])
    })

    test('a JWT that claims to be of GitHub is refused with 401, without a call to GitHub', async () => {
      const token = await mint(await createKey('forged'), { claims: { iss: github.issuer } })
      for (const path of ['/tokens-only', '/orders']) {
        const headers = { authorization: `Bearer ${token}` }
        const response = await fetch(gateway.url + path, { headers })
        expect([path, response.status]).toEqual([path, 401])
        expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
      }
      expect([github.requests, gateway.reached]).toEqual([[], []])
    })
  })
})
