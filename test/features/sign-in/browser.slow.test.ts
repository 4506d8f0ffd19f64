/** Sign-in in a real browser, with a certified provider, before the gateway on each runtime. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Browser,
  CHROMIUM,
  type Chromium,
  type Page,
  startChromium,
} from '../../harness/chromium.ts'
import { IS_LONG } from '../../harness/long.ts'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'

if (CHROMIUM === undefined)
  console.info('sign-in: the browser tests are skipped, because Chromium is missing')

const PATIENCE_MS = 60_000
/** The tests without a browser run on both runtimes each time. */
const RUNS = RUNTIMES.filter((runtime) => IS_LONG || runtime === 'Node')

let chromium: Chromium
beforeAll(() => {
  if (CHROMIUM !== undefined) chromium = startChromium()
})
afterAll(() => chromium?.close())

describe.skipIf(CHROMIUM === undefined).each(RUNS)('in a browser, on %s [S76]', (runtime) => {
  let gateway: SignInGateway
  let browser: Browser
  let page: Page

  beforeAll(async () => {
    gateway = await startGateway({ runtime })
    browser = await chromium.openBrowser()
    page = await browser.open(`${gateway.url}/oauth/signed-out`, 800, 600)
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
  })
  beforeEach(async () => {
    await gateway.redis.direct.flushall()
    await page.send('Network.clearBrowserCookies')
    gateway.reached.length = 0
    Object.assign(gateway.provider.user, { subject: 'alice', roles: ['reader'] })
  })

  async function until(of: Page, expression: string): Promise<void> {
    const endMs = Date.now() + PATIENCE_MS
    while (Date.now() < endMs) {
      // A page that is being replaced cannot evaluate anything.
      if (await of.evaluate<boolean>(expression).catch(() => false)) return
      await new Promise((done) => setTimeout(done, 20))
    }
    const seen = await of.evaluate('location.href + " " + document.body.innerText.slice(0, 300)')
    throw new Error(`${expression}: ${seen}`)
  }
  const at = (path: string) =>
    `document.readyState === 'complete' && location.href === '${gateway.url}${path}'`
  const titled = (title: string) =>
    `document.readyState === 'complete' && document.title === '${title}'`
  async function go(path: string, of = page): Promise<void> {
    await of.send('Page.navigate', { url: gateway.url + path })
  }
  async function signIn(path = '/orders', of = page): Promise<void> {
    await go(path, of)
    await until(of, at(path))
    await until(of, titled('Orders'))
  }
  const ask = (path: string, options: object = {}, of = page) =>
    of.evaluate<number>(
      `fetch('${path}', ${JSON.stringify(options)}).then((response) => response.status)`,
    )
  const cookies = async () => {
    const { cookies: all } = (await page.send('Network.getCookies', { urls: [gateway.url] })) as {
      cookies: { name: string; secure: boolean; httpOnly: boolean; sameSite: string }[]
    }
    return all.filter(({ name }) => name.startsWith('__Host-'))
  }

  test('a deep link leads through the form of the provider, and back to the page', async () => {
    gateway.provider.user.subject = undefined
    await go('/orders/7?limit=3')
    await until(page, titled('Provider'))
    await page.evaluate(
      `document.querySelector('input').value = 'carol'; document.forms[0].submit()`,
    )
    await until(page, at('/orders/7?limit=3'))
    expect(await page.evaluate('document.body.innerText')).toContain('"subject":"carol"')
  })

  test('the browser keeps the cookies on http://127.0.0.1, and no script reads them', async () => {
    await signIn()
    const found = await cookies()
    expect(found.map(({ name }) => name).sort()).toEqual([
      expect.stringMatching(/^__Host-portcullis-login-[\w-]{8}$/),
      '__Host-portcullis-session',
    ])
    for (const cookie of found)
      expect(cookie).toMatchObject({ secure: true, httpOnly: true, sameSite: 'Lax' })
    expect(await page.evaluate('document.cookie')).toBe('theme=dark')
  })

  test('a page of the gateway reads and writes with its session', async () => {
    await signIn()
    expect(await ask('/orders')).toBe(200)
    expect(await ask('/orders', { method: 'POST' })).toBe(200)
  })

  test('two tabs that sign in at the same time both reach their pages', async () => {
    const other = await browser.open(`${gateway.url}/oauth/signed-out`, 800, 600)
    gateway.provider.user.subject = undefined
    await Promise.all([go('/orders/1'), go('/orders/2', other)])
    await Promise.all([until(page, titled('Provider')), until(other, titled('Provider'))])
    const submit = `document.querySelector('input').value = 'alice'; document.forms[0].submit()`
    await page.evaluate(submit)
    await until(page, at('/orders/1'))
    await other.evaluate(submit)
    await until(other, at('/orders/2'))
    expect([await ask('/orders'), await ask('/orders', {}, other)]).toEqual([200, 200])
  })

  test('after the sign-out in another tab, a fetch gets 401, and a page leads to the login', async () => {
    const other = await browser.open(`${gateway.url}/oauth/signed-out`, 800, 600)
    await signIn()
    await go('/oauth/sign-out', other)
    await until(other, titled('Sign out'))
    await other.evaluate(`document.querySelector('button').click()`)
    await until(other, `location.origin === '${gateway.provider.issuer}'`)
    expect(await ask('/orders')).toBe(401)
    const logins = () => gateway.provider.calls.filter((call) => call === 'GET /auth').length
    const before = logins()
    await go('/orders/5')
    await until(page, at('/orders/5'))
    expect(logins() - before).toBe(1)
  })

  test('the button of the provider ends the session by back-channel logout too', async () => {
    await signIn()
    await go('/oauth/sign-out')
    await until(page, titled('Sign out'))
    await page.evaluate(`document.querySelector('button').click()`)
    await until(page, `location.pathname === '/session/end' && document.forms.length > 0`)
    await page.evaluate(`document.querySelector('button[name=logout], button').click()`)
    await until(page, at('/oauth/signed-out'))
    expect(gateway.provider.calls).toContain('POST /session/end/confirm')
    expect(await gateway.redis.direct.keys('pc:*session:*')).toEqual([])
    gateway.provider.user.subject = undefined
    await go('/orders')
    await until(page, titled('Provider'))
  })

  test('the back button after a sign-out does not show a page of the user', async () => {
    await signIn('/orders/9')
    await go('/oauth/sign-out')
    await until(page, titled('Sign out'))
    await page.evaluate(`document.querySelector('button').click()`)
    await until(page, `location.origin === '${gateway.provider.issuer}'`)
    // Of the provider too: otherwise it would sign the user in again.
    await page.send('Network.clearBrowserCookies')
    gateway.provider.user.subject = undefined
    await page.evaluate('history.go(-2)')
    await until(page, titled('Provider'))
  })

  test('a session that ends in the middle leads to the login and back', async () => {
    await signIn()
    await gateway.redis.direct.flushall()
    await gateway.restart()
    expect(await ask('/orders')).toBe(401)
    await go('/orders/8')
    await until(page, at('/orders/8'))
    await until(page, titled('Orders'))
  })

  test('a form of another page cannot change anything, and cannot sign the user out', async () => {
    await signIn()
    gateway.reached.length = 0
    const evil = await browser.open(
      `${gateway.provider.issuer}/.well-known/openid-configuration`,
      8,
      8,
    )
    const submitTo = (path: string) =>
      evil.evaluate(`{
        const form = document.createElement('form')
        form.method = 'post'
        form.action = '${gateway.url}${path}'
        document.body.append(form)
        form.submit()
      }`)
    // The same site, because sites have no port: the cookie is sent, and only the headers differ.
    await submitTo('/orders')
    await until(evil, `document.body.innerText.includes('It came from a page of another site')`)
    expect(gateway.reached).toHaveLength(0)
    await evil.send('Page.navigate', {
      url: `${gateway.provider.issuer}/.well-known/openid-configuration`,
    })
    await until(evil, `location.origin === '${gateway.provider.issuer}'`)
    await submitTo('/oauth/sign-out')
    await until(evil, titled('The request was refused'))
    expect(await ask('/orders')).toBe(200)
  })

  test('no page can frame the pages of the sign-in', async () => {
    const evil = await browser.open(
      `${gateway.provider.issuer}/.well-known/openid-configuration`,
      8,
      8,
    )
    const loaded = await evil.evaluate<boolean>(`new Promise((done) => {
      const frame = document.createElement('iframe')
      frame.src = '${gateway.url}/oauth/sign-out'
      frame.onload = () => done(frame.contentDocument !== null || frame.contentWindow.length > 0)
      document.body.append(frame)
    })`)
    expect(loaded).toBe(false)
    expect(
      evil.events.some(({ params }) => JSON.stringify(params).includes('frame-ancestors')),
    ).toBe(true)
  })

  test('the pages have their style, and no message of the console', async () => {
    const fresh = await browser.open(`${gateway.url}/oauth/signed-out`, 800, 600)
    const background = await fresh.evaluate(
      `getComputedStyle(document.documentElement).getPropertyValue('--portcullis-radius').trim()`,
    )
    expect(background).toBe('8px')
    const logged = fresh.events.filter(({ method }) => method === 'Log.entryAdded')
    expect(logged.filter(({ params }) => !JSON.stringify(params).includes('favicon'))).toEqual([])
  })

  test('while the provider is down, the user goes on, and a new login gets a page', async () => {
    await signIn()
    gateway.provider.down(true)
    expect(await ask('/orders')).toBe(200)
    await page.send('Network.clearBrowserCookies')
    await gateway.restart()
    await go('/orders')
    await until(page, titled('Sign-in is not available'))
    gateway.provider.down(false)
    await gateway.restart()
  })

  test('cookies over the limits of a server are an error, not another identity', async () => {
    await signIn()
    for (let n = 0; n < 12; n++)
      await page.send('Network.setCookie', {
        name: `filler-${n}`,
        value: 'x'.repeat(4_000),
        url: gateway.url,
      })
    gateway.reached.length = 0
    const status = await ask('/orders').catch(() => 0)
    expect(runtime === 'Node' ? [431, 0] : [200, 431]).toContain(status)
    if (status !== 200) expect(gateway.reached).toHaveLength(0)
  })
})
