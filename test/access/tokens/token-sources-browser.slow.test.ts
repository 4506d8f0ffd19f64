/** Requests of pages in a real browser that keeps a token in a cookie. */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, CHROMIUM, type Chromium, startChromium } from '../../harness/chromium.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { RUNTIMES } from '../../origin/runtimes.ts'
import type { Running } from '../../origin/workerd.ts'
import type { Reasons } from './sources-gateway.ts'

const COOKIE = 'token'
const POLL_MS = 20

const html = (response: ServerResponse, text: string) =>
  response.setHeader('Content-Type', 'text/html').end(text)

if (CHROMIUM === undefined)
  console.info('token sources: the browser tests are skipped, because Chromium is missing')

let chromium: Chromium
beforeAll(() => {
  if (CHROMIUM !== undefined) chromium = startChromium()
})
afterAll(() => chromium?.close())

describe.skipIf(CHROMIUM === undefined).each(RUNTIMES)(
  'in a browser with a token in a cookie, on $name',
  ({ start }) => {
    let redis: TestRedis
    let origin: Awaited<ReturnType<typeof startHttpOrigin>>
    let gateway: Running
    let other: TestServer
    let browser: Browser
    let token: string

    beforeAll(async () => {
      browser = await chromium.openBrowser()
      redis = await startTestRedis()
      await redis.direct.flushall()
      const key = await createKey('idp')
      token = await mint(key, { claims: { sub: 'carol' } })
      origin = await startHttpOrigin((request, response) => {
        html(response, `<title>${request.method} ${request.headers['x-auth-subject']}</title>`)
      })
      // The page of another origin. A cookie belongs to all ports of a host, so the browser sends it.
      other = await startHttpServer((_request, response) => html(response, '<title>other</title>'))
      const issuer = { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } }
      gateway = await start({
        entry: 'test/access/tokens/sources-gateway.ts',
        vars: {
          ...redisVars(redis),
          PUBLIC_URL: 'https://gateway.test',
          ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
          ISSUERS: JSON.stringify([{ ...issuer, tokenSources: [{ cookie: COOKIE }] }]),
        },
      })
    })
    afterAll(async () => {
      await browser?.close()
      await Promise.all([gateway?.stop(), origin?.close(), other?.close()])
      await redis?.close()
    })

    const url = (path: string) => `http://127.0.0.1:${gateway.port}${path}`
    const reasons = async () => (await (await fetch(url('/read-here'))).json()) as Reasons

    /** Opens a page, with the cookie of the gateway, and forgets what reached the origin so far. */
    async function openPage(address: string) {
      const page = await browser.open('about:blank', 800, 600)
      const cookie = {
        name: COOKIE,
        value: token,
        url: url('/'),
        sameSite: 'Strict',
        httpOnly: true,
      }
      await page.send('Network.setCookie', cookie)
      const loaded = page.events.length
      await page.send('Page.navigate', { url: address })
      await expect
        .poll(() => page.events.slice(loaded).some((one) => one.method === 'Page.loadEventFired'), {
          interval: POLL_MS,
        })
        .toBe(true)
      origin.requests.length = 0
      return { page, before: (await reasons()).length }
    }

    const POST = (address: string) =>
      `fetch('${address}', { method: 'POST', mode: 'no-cors', credentials: 'include' })`
    const SUBMIT = (address: string) => `(() => {
    document.body.innerHTML = '<form method="post" action="${address}"></form>'
    document.forms[0].submit()
  })()`
    const CONNECT = (address: string) => `void new WebSocket('${address.replace('http:', 'ws:')}')`

    test('a page of the same origin sends requests with effects', async () => {
      const { page } = await openPage(url('/public'))
      expect(await page.evaluate('document.title')).toBe('GET carol')
      const answer = `${POST(url('/orders'))}.then(({ status }) => status)`
      expect(await page.evaluate(answer)).toBe(200)
      expect(origin.requests.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
        'POST /orders',
      ])
    })

    test.each([
      ['a fetch', () => `${POST(url('/orders'))}.then(() => true)`, 'sec_fetch_site'],
      ['a form', () => SUBMIT(url('/orders')), 'sec_fetch_site'],
      // Chromium sends only `Origin` with a WebSocket.
      ['a WebSocket', () => CONNECT(url('/socket')), 'origin'],
    ])('a page of another origin of the same site is refused: %s', async (_, expression, check) => {
      const { page, before } = await openPage(`${other.url}/`)
      expect(await page.evaluate('document.title')).toBe('other')
      await page.evaluate(expression())
      await expect
        .poll(async () => (await reasons()).slice(before), { interval: POLL_MS })
        .toEqual([{ decision: 'deny', reason: `cross_origin_request:${check}` }])
      expect(origin.requests).toEqual([])
    })
  },
)
