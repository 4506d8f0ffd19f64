/** Pages of two origins in a real browser, before the gateway on each runtime. */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Browser,
  CHROMIUM,
  type Chromium,
  type Page,
  startChromium,
} from '../../harness/chromium.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { type CorsGateway, RUNTIMES, startGateway } from './gateway.ts'

const blank = (_: unknown, response: ServerResponse) =>
  response.setHeader('Content-Type', 'text/html').end('<title>page</title>')

if (CHROMIUM === undefined)
  console.info('CORS: the browser tests are skipped, because Chromium is missing')

let chromium: Chromium
beforeAll(() => {
  if (CHROMIUM !== undefined) chromium = startChromium()
})
afterAll(() => chromium?.close())

describe.skipIf(CHROMIUM === undefined).each(RUNTIMES)('in a browser, on %s', (runtime) => {
  let gateway: CorsGateway
  let servers: TestServer[]
  let browser: Browser
  /** The page that the policy allows, and a page of another origin. */
  let app: Page
  let evil: Page
  let token: string

  beforeAll(async () => {
    servers = [await startHttpServer(blank), await startHttpServer(blank)]
    const [ofApp, ofEvil] = servers.map(({ url }) => url) as [string, string]
    gateway = await startGateway(runtime, ofApp)
    token = await gateway.token({ claims: { roles: ['writer'] } })
    browser = await chromium.openBrowser()
    app = await browser.open(`${ofApp}/`, 800, 600)
    evil = await browser.open(`${ofEvil}/`, 800, 600)
  })
  afterAll(async () => {
    await browser?.close()
    await Promise.all([gateway?.close(), ...(servers ?? []).map((server) => server.close())])
  })
  beforeEach(() => {
    gateway.reached.length = 0
  })

  /** Status, code and headers of the response, as the page sees them; null if it may not read it. */
  const ask = (page: Page, path: string, options: object = {}) =>
    page.evaluate<{ status: number; body: Record<string, unknown>; headers: string[] } | null>(
      `fetch('${gateway.url}${path}', ${JSON.stringify(options)}).then(
        async (response) => ({
          status: response.status,
          body: await response.json(),
          headers: [...response.headers.keys()],
        }),
        () => null,
      )`,
    )
  const authorized = () => ({ headers: { Authorization: `Bearer ${token}` } })
  const reached = () => gateway.reached.map(({ method, url }) => `${method} ${url}`)

  test('an allowed page sends a token and reads the response with its exposed headers', async () => {
    const answer = await ask(app, '/orders', authorized())
    expect(answer?.body).toEqual({ method: 'GET', cookie: null })
    expect(answer?.headers).toContain('etag')
    expect(answer?.headers).toContain('x-request-id')
    expect(answer?.headers).not.toContain('x-internal')
  })

  test('an allowed page writes JSON after a preflight request', async () => {
    const { headers } = authorized()
    const json = { ...headers, 'Content-Type': 'application/json' }
    const answer = await ask(app, '/orders', { method: 'POST', headers: json, body: '{}' })
    expect(answer?.body).toEqual({ method: 'POST', cookie: null })
    expect(reached()).toEqual(['POST /orders'])
  })

  test('an allowed page reads why it is refused', async () => {
    const answer = await ask(app, '/orders')
    expect([answer?.status, answer?.body.code]).toEqual([401, 'missing_token'])
    expect(answer?.headers).toContain('www-authenticate')
    expect((await ask(app, '/unknown'))?.body.code).toBe('not_found')
  })

  test('another page can neither read a response, nor send a token to the origin', async () => {
    expect(await ask(evil, '/orders')).toBeNull()
    expect(await ask(evil, '/orders', authorized())).toBeNull()
    expect(await ask(evil, '/orders', { method: 'POST', ...authorized() })).toBeNull()
    expect(reached()).toEqual([])
  })

  test('a method without rules does not reach the origin, from an allowed page either', async () => {
    expect(await ask(app, '/orders', { method: 'DELETE', ...authorized() })).toBeNull()
    expect(reached()).toEqual([])
  })

  test('a header that the rules do not allow does not reach the origin', async () => {
    const headers = { ...authorized().headers, 'X-Client': 'web' }
    expect(await ask(app, '/orders', { headers })).toBeNull()
    expect(reached()).toEqual([])
    expect((await ask(app, '/cookies', { headers: { 'X-Client': 'web' } }))?.status).toBe(200)
  })

  test('cookies go along and the response is readable only for the page of the rules', async () => {
    const cookie = { name: 'theme', value: 'dark', url: gateway.url }
    await app.send('Network.setCookie', cookie)
    const options = { credentials: 'include' }
    expect((await ask(app, '/cookies', options))?.body).toEqual({
      method: 'GET',
      cookie: 'theme=dark',
    })
    expect(await ask(evil, '/cookies', options)).toBeNull()
    // Rules for every page never include credentials.
    expect(await ask(app, '/open', options)).toBeNull()
    expect((await ask(evil, '/open'))?.status).toBe(200)
  })
})
