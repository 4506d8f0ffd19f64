/** A person whose navigation is refused reads a page; a program reads a problem document. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

/** The page of each refusal, for a user with the role `reader`. */
const REFUSALS: readonly [string, string, number, string][] = [
  ['a page without permission', '/audit', 403, 'Your account has no access to this page'],
  ['an unknown page', '/nothing', 404, 'This page does not exist'],
  ['an unknown page of the gateway', '/-/nothing', 404, 'This page does not exist'],
  ['a path with two readings', '/orders/%2e%2e%2faudit', 400, 'This link is not valid'],
  ['a page for programs', '/tokens-only', 401, 'This page is for programs'],
  ['a login that took too long', '/oauth/callback?state=x', 400, 'The sign-in has expired'],
]

const BRANDING = {
  name: 'Tea & <b>Co</b>',
  logo: '/logo.svg',
  links: { privacy: 'https://tea.example/privacy', support: '/help' },
}

describe.each(RUNTIMES)('a refused navigation on %s', (runtime) => {
  let gateway: SignInGateway
  let browser: UserAgent
  beforeAll(async () => {
    gateway = await startGateway({ runtime, definition: { roles: ['reader'], branding: BRANDING } })
  })
  afterAll(() => gateway?.close())
  beforeEach(async () => {
    browser = createUserAgent()
    await browser.visit(at('/orders'))
    gateway.reached.length = 0
  })
  const at = (path: string) => gateway.url + path

  test.each(REFUSALS)(
    '%s is a page with the status and the request id',
    async (_name, path, status, title) => {
      const { headers, text, ...page } = await browser.visit(at(path))
      expect(page.status).toBe(status)
      expect(headers.get('content-type')).toBe('text/html; charset=UTF-8')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self' data:; .*frame-ancestors 'none'$/,
      )
      expect(headers.get('content-length')).not.toBe('0')
      expect(text).toMatch(/^<!doctype html>\s*<html lang="en">/)
      expect(text).toContain('name="viewport"')
      expect(text).toContain(`<title>${title} - Tea &amp; &lt;b&gt;Co&lt;/b&gt;</title>`)
      expect(text).toContain('<img src="/logo.svg" alt=""><span>Tea &amp; &lt;b&gt;Co')
      expect(text).toContain(`<h1>${title}</h1>`)
      expect(text).not.toContain('<script')
      const id = headers.get('x-request-id') ?? ''
      expect(id).toMatch(/^[\w-]{8,}$/)
      expect(text).toContain(id)
      expect(gateway.reached).toEqual([])
    },
  )

  test('without permission names the account, and leads to another one and to the sign-out', async () => {
    const { text } = await browser.visit(at('/audit?from=a%22b'))
    expect(text).toMatch(/signed in as <strong>[^<]+<\/strong>/)
    const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link = '']) =>
      link.replaceAll('&amp;', '&'),
    )
    expect(links).toEqual([
      `/oauth/sign-in?${new URLSearchParams({ return_to: '/audit?from=a%22b', prompt: 'select_account' })}`,
      '/oauth/sign-out',
      'https://tea.example/privacy',
      '/help',
    ])
  })

  test('that wrote nothing with POST is a page too', async () => {
    const { status, text } = await browser.visit(at('/orders'), undefined, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'cross-site', origin: 'https://attacker.example' },
    })
    expect([status, text]).toEqual([403, expect.stringContaining('<h1>')])
    expect(gateway.reached).toEqual([])
  })

  const NAVIGATION = {
    accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8',
    'sec-fetch-mode': 'navigate',
  }
  const OF_PROGRAMS: readonly [string, Record<string, string>][] = [
    ['fetch', { ...NAVIGATION, 'sec-fetch-mode': 'cors' }],
    ['a frame', { ...NAVIGATION, 'sec-fetch-dest': 'iframe' }],
    ['a client without Sec-Fetch-Mode', { accept: 'text/html' }],
    ['a client that takes anything', { 'sec-fetch-mode': 'navigate', accept: '*/*' }],
    ['a client that refuses HTML', { ...NAVIGATION, accept: 'text/html;q=0, application/json' }],
    [
      'a client with a long list of types',
      { ...NAVIGATION, accept: `text/html${' ;'.repeat(600)}` },
    ],
    ['a client that names no type', { 'sec-fetch-mode': 'navigate' }],
  ]
  test.each(OF_PROGRAMS)('is a problem document for %s', async (_name, headers) => {
    for (const path of ['/audit', '/nothing']) {
      const response = await browser.send(at(path), { headers })
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      expect(await response.json()).toMatchObject({ status: response.status })
    }
  })

  test('is without a body for HEAD, and keeps the fields of the refusal', async () => {
    const head = await browser.send(at('/audit'), { method: 'HEAD', headers: NAVIGATION })
    expect([head.status, await head.text()]).toEqual([403, ''])
    const method = await browser.send(at('/orders/1'), { method: 'DELETE', headers: NAVIGATION })
    expect([method.status, method.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(await method.text()).toContain('<h1>This page cannot do that</h1>')
  })

  test('leaves a response of the origin as it is', async () => {
    const { status, text } = await browser.visit(at('/open'))
    expect([status, text]).toEqual([200, expect.stringContaining('<title>Orders</title>')])
  })
})
