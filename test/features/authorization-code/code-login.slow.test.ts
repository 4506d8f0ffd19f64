/** The whole flow with a certified identity provider, on each runtime. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Browser, CHROMIUM, startChromium } from '../../harness/chromium.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import {
  NO_FAULT,
  openWindow,
  TAKES_PICTURES,
  takePicture,
  VIEWS,
} from '../../harness/page-check.ts'
import { startProvider, type TestProvider } from '../sign-in/provider.ts'
import { createUserAgent, type UserAgent } from '../sign-in/user-agent.ts'
import { challengeOf, newVerifier } from './code-gateway.ts'
import { startLoginGateway } from './login-gateway.ts'

type LoginGateway = Awaited<ReturnType<typeof startLoginGateway<TestProvider>>>

const REDIRECT_URI = 'https://agent.example.org/cb'

describe.each(['Node', 'workerd'] as const)('the authorization code flow on %s', (runtime) => {
  let gateway: LoginGateway
  beforeAll(async () => {
    gateway = await startLoginGateway(runtime, startProvider)
  })
  afterAll(() => gateway?.close())

  const post = (browser: UserAgent, path: string, form: Record<string, string>) =>
    browser.visit(gateway.url + path, /^https:\/\/agent\.example\.org/, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'sec-fetch-site': 'same-origin',
      },
      body: new URLSearchParams(form).toString(),
    })

  test('a client registers, the user signs in at the provider and allows it, and the tokens work [S77]', async () => {
    const browser = createUserAgent()
    const registered = await browser.send(`${gateway.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: 'Agent',
        redirect_uris: [REDIRECT_URI],
        grant_types: ['authorization_code', 'refresh_token'],
      }),
    })
    const { client_id: id = '' } = (await registered.json()) as Record<string, string>
    const verifier = newVerifier()
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: id,
      redirect_uri: REDIRECT_URI,
      code_challenge: challengeOf(verifier),
      code_challenge_method: 'S256',
      resource: `${gateway.url}/mcp`,
      state: 'st',
    })
    const page = await browser.visit(`${gateway.url}/oauth/authorize?${query}`)
    expect(page.path.slice(0, 3)).toEqual(['/oauth/authorize', '/oauth/sign-in', '/auth'])
    expect(page.path.slice(-2)).toEqual(['/oauth/callback', '/oauth/authorize'])
    for (const part of ['alice', 'Unverified', 'agent.example.org', 'Use the library'])
      expect(page.text).toContain(part)
    const [, request = ''] = /name="request" value="([^"]+)"/.exec(page.text) ?? []
    const decided = await post(browser, '/oauth/consent', { request, decision: 'allow' })
    const answer = new URL(decided.url).searchParams
    expect(answer.get('iss')).toBe(gateway.url)
    const token = async (form: Record<string, string>) => {
      const visit = await post(createUserAgent(), '/oauth/token', { client_id: id, ...form })
      return { status: visit.status, body: JSON.parse(visit.text) }
    }
    const grant = {
      grant_type: 'authorization_code',
      code: answer.get('code') ?? '',
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier,
    }
    const issued = await token(grant)
    expect(issued).toMatchObject({ status: 200, body: { scope: 'mcp:use' } })
    const call = async (accessToken: string, path: string) => {
      const headers = { authorization: `Bearer ${accessToken}` }
      return (await createUserAgent().send(gateway.url + path, { headers })).status
    }
    expect(await call(issued.body.access_token, '/mcp')).toBe(200)
    expect(await call(issued.body.access_token, '/orders')).toBe(401)
    const refresh = { grant_type: 'refresh_token', refresh_token: issued.body.refresh_token }
    const refreshed = await token(refresh)
    expect(await call(refreshed.body.access_token, '/mcp')).toBe(200)
    expect(gateway.reached).toHaveLength(2)
    // A replay of the code ends everything.
    expect((await token(grant)).body.error).toBe('invalid_grant')
    expect(await call(refreshed.body.access_token, '/mcp')).toBe(401)
    expect(gateway.reached).toHaveLength(2)
  })

  test('a user without roles gets a page that names the missing permissions, and no code', async () => {
    gateway.provider.user.subject = 'bob'
    gateway.provider.user.roles = []
    onTestFinished(() => {
      gateway.provider.user.subject = 'alice'
      gateway.provider.user.roles = ['reader']
    })
    const browser = createUserAgent()
    const registered = await browser.send(`${gateway.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Agent', redirect_uris: [REDIRECT_URI] }),
    })
    const { client_id = '' } = (await registered.json()) as Record<string, string>
    const query = new URLSearchParams({
      response_type: 'code',
      client_id,
      redirect_uri: REDIRECT_URI,
      code_challenge: challengeOf(newVerifier()),
      code_challenge_method: 'S256',
      resource: `${gateway.url}/mcp`,
      state: 'st',
    })
    const reached = gateway.reached.length
    const url = `${gateway.url}/oauth/authorize?${query}`
    const page = await browser.visit(url, /^https:\/\/agent\.example\.org/)
    expect(page.path.slice(-2)).toEqual(['/oauth/callback', '/oauth/authorize'])
    expect(page.status).toBe(403)
    expect(page.headers.get('content-type')).toContain('text/html')
    for (const part of ['Your account has no access', 'Ask the operator', 'access_denied'])
      expect(page.text).toContain(part)
    expect(page.text).not.toContain('name="request"')
    // The user may return to the app, which gets the reason and no code.
    const [, link = ''] = /href="(https:\/\/agent\.example\.org[^"]*)"/.exec(page.text) ?? []
    const answer = new URL(link.replaceAll('&amp;', '&')).searchParams
    expect(answer.get('error')).toBe('access_denied')
    expect(answer.get('state')).toBe('st')
    expect(answer.has('code')).toBe(false)
    expect(gateway.reached).toHaveLength(reached)
  })
})

describe.skipIf(CHROMIUM === undefined)('the consent page in Chromium', () => {
  let gateway: LoginGateway
  let app: TestServer
  let browser: Browser
  /** Paths and queries of the requests that reached the app, and a page that it serves. */
  const received: string[] = []
  let evil = ''
  beforeAll(async () => {
    gateway = await startLoginGateway('Node', startProvider)
    app = await startHttpServer((request, response) => {
      if (request.url !== '/favicon.ico') received.push(request.url ?? '')
      response.setHeader('content-type', 'text/html')
      response.end(request.url?.startsWith('/evil') ? evil : '<title>Done</title>')
    })
    browser = startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.close()
    await gateway?.close()
  })

  async function requestUrl(): Promise<string> {
    const registered = await createUserAgent().send(`${gateway.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Agent', redirect_uris: ['http://127.0.0.1/cb'] }),
    })
    const { client_id = '' } = (await registered.json()) as Record<string, string>
    const query = new URLSearchParams({
      response_type: 'code',
      client_id,
      redirect_uri: `${app.url}/cb`,
      code_challenge: challengeOf(newVerifier()),
      code_challenge_method: 'S256',
      state: 'st',
    })
    return `${gateway.url}/oauth/authorize?${query}`
  }

  test('the user signs in and allows it by a click; the browser returns to the app with the code [S77]', async () => {
    const page = await browser.open(await requestUrl(), 800, 900)
    expect(await page.evaluate('document.querySelector("h1").textContent')).toBe('Allow access?')
    await page.evaluate('document.querySelector("button[value=allow]").click()')
    await expect.poll(() => received.find((path) => path.startsWith('/cb?code='))).toBeDefined()
    expect(received.at(-1)).toContain(`iss=${encodeURIComponent(gateway.url)}`)
  })

  test('the consent page has no fault', async () => {
    const url = await requestUrl()
    const user = createUserAgent()
    await user.visit(url)
    const window = await openWindow(browser, url, VIEWS[0], user.jarOf(url))
    const found = await window.findFaults(url, VIEWS)
    expect(found).toEqual(VIEWS.map(([view]) => ({ view, title: 'Allow access?', ...NO_FAULT })))
    const mark = "getComputedStyle(document.querySelector('main li')).listStyleType"
    expect(await window.page.evaluate(mark)).toBe('disc')
    const view = VIEWS[2]
    if (TAKES_PICTURES && view !== undefined) {
      await window.show(view)
      await takePicture(window.page, 'sign-in', 'consent', view)
    }
    await window.close()
  })

  test('a page of another origin can neither frame the consent page nor send its form [S77]', async () => {
    const url = await requestUrl()
    const page = await browser.open(url, 800, 900)
    const handle = await page.evaluate<string>('document.querySelector("[name=request]").value')
    received.length = 0
    // The session of the browser is sent: ports are one site.
    evil = `<iframe src="${url}"></iframe>
<form method="post" action="${gateway.url}/oauth/consent">
<input name="request" value="${handle}"><input name="decision" value="allow"></form>`
    const attack = await browser.open(`${app.url}/evil`, 800, 900)
    expect(await attack.evaluate('document.querySelector("iframe").contentDocument')).toBeNull()
    await attack.evaluate('document.querySelector("form").submit()')
    await expect
      .poll(() => attack.evaluate('document.querySelector("h1")?.textContent ?? ""'))
      .toBe('This request is not valid')
    expect(received).toEqual(['/evil'])
    // The page of the user still decides.
    await page.evaluate('document.querySelector("button[value=deny]").click()')
    await expect.poll(() => received.find((path) => path.startsWith('/cb?error='))).toBeDefined()
  })
})
