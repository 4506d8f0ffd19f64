/**
 * The console in a real browser, over real servers: for every eye, every screen, and the keyboard. With
 * `UPDATE_SCREENSHOTS=1`, it writes the pictures of the documentation.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Browser,
  CHROMIUM,
  type Chromium,
  type Page,
  startChromium,
} from '../../harness/chromium.ts'
import { RUNTIMES } from '../../harness/gateway.ts'
import { keyboardOf } from '../../harness/keyboard.ts'
import { IS_LONG, usualOrLong } from '../../harness/long.ts'
import {
  NO_FAULT,
  openWindow,
  TAKES_PICTURES,
  takePicture,
  VIEWS,
  type View,
} from '../../harness/page-check.ts'
import { pathsOf } from './pages.ts'
import { startConsoleServer } from './server.ts'

const WIDTHS = [390, 768, 1280]
/** Boxes that scroll to the side, and controls whose text is cut. */
const CUT = `[...document.querySelectorAll('.scroll, button, summary, select, a, h1, h2')]
  .filter((one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).display !== 'inline')
  .map((one) => one.outerHTML.slice(0, 200))`
const OVERFLOW = 'document.documentElement.scrollWidth - innerWidth'

/** The pages in the documentation, by the name of their picture. */
const PICTURED: Readonly<Record<string, string>> = {
  '/-/console?last=24h': 'overview',
  '/-/console/decisions?last=24h': 'decisions',
  '/-/console/api-keys': 'api-keys',
}

if (CHROMIUM === undefined) console.info('console: skipped, because Chromium is missing')

let chromium: Chromium
beforeAll(() => {
  if (CHROMIUM !== undefined) chromium = startChromium()
})
afterAll(() => chromium?.close())

describe.skipIf(CHROMIUM === undefined).each(RUNTIMES)('the console on %s', (runtime) => {
  /** The pages are the same on both runtimes: on workerd, each run has one view and one task. */
  const testOnNode = test.runIf(IS_LONG || runtime === 'Node')
  let server: Awaited<ReturnType<typeof startConsoleServer>>
  let browser: Browser
  let cookie: readonly [string, string]
  let key: { readonly id: string; readonly secret: string }

  beforeAll(async () => {
    server = await startConsoleServer(runtime)
    const session = await server.cookieOf({ roles: ['operator'], name: 'Olga Example' })
    const [name = '', value = ''] = session.split('=')
    cookie = [name, value]
    const text = await server.act(session, {
      action: 'createApiKey',
      name: 'nightly report',
      subject: 'reporter',
    })
    key = {
      id: /api-keys\/([0-9a-f-]{36})/.exec(text)?.[1] ?? '',
      secret: /value="(pk_[0-9A-Za-z]{49})"/.exec(text)?.[1] ?? '',
    }
    await server.fill(session)
    browser = await chromium.openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
  })

  test('has no fault', async () => {
    const paths = pathsOf({ request: server.refused, key: key.id })
    const pages = paths.filter(
      (path) => !/\/(?:tail|stream|(?:script|copy)\.js|export)$/.test(path),
    )
    expect(pages.length).toBeGreaterThanOrEqual(12)
    const window = await openWindow(browser, server.url, VIEWS[0], [cookie])
    const title = expect.stringContaining(' - Portcullis')
    for (const path of pages) {
      const found = await window.findFaults(
        server.url + path,
        usualOrLong<readonly View[]>(VIEWS.slice(0, 1), VIEWS),
      )
      expect(found, path).toEqual(found.map(({ view }) => ({ view, title, ...NO_FAULT })))
      for (const width of runtime === 'Node' ? WIDTHS : []) {
        await window.show(['', width, 800, 'light'])
        const cut = await window.page.evaluate<readonly string[]>(CUT)
        const overflow = await window.page.evaluate(OVERFLOW)
        expect({ path, width, cut, overflow }).toEqual({ path, width, cut: [], overflow: 0 })
      }
    }
    await window.close()
  })

  test.runIf(runtime === 'Node' && TAKES_PICTURES).each(VIEWS)(
    'has its pictures of %s in the documentation',
    async (...view) => {
      for (const [path, name] of Object.entries(PICTURED)) {
        const page = await open(path, view)
        await takePicture(page, 'console', name, view)
        await page.send('Page.close')
      }
    },
  )

  async function open(path: string, view: View = VIEWS[0]) {
    const { page, load } = await openWindow(browser, server.url, view, [cookie])
    await load(server.url + path)
    return page
  }

  const textOf = (page: Page) => page.evaluate<string>('document.body.innerText')

  test('with the keyboard: why was alice refused yesterday, and revoke her everywhere', async () => {
    const page = await open('/-/console')
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('Decisions')
    await keyboard.enter({ loads: true })
    await keyboard.tabTo('24h')
    await keyboard.enter({ loads: true })
    await keyboard.tabTo('Subject or request id')
    await keyboard.type('alice')
    await keyboard.enter({ loads: true })
    // The first column of the newest event: its time.
    await keyboard.tabTo(new Date().toISOString().slice(0, 4))
    await keyboard.enter({ loads: true })
    expect(await textOf(page)).toContain(
      'Refused with 403: the caller does not have orders:write, which GET /orders/:id needs.',
    )
    expect(await textOf(page)).toMatch(/admit\s+passed\s+12\.0\s+authorize\s+refused/)
    await keyboard.tabTo('Revoke this subject everywhere')
    await keyboard.enter()
    await keyboard.tabTo('Reason')
    await keyboard.type('left the company')
    await keyboard.enter({ loads: true })
    const { origin } = new URL(server.url)
    await page.evaluate(`location = '${origin}/-/console/callers?kind=subject&value=alice'; 0`)
    const loaded = () => page.evaluate('location.pathname + document.readyState')
    await expect.poll(loaded).toBe('/-/console/callerscomplete')
    expect(await textOf(page)).toContain('left the company')
    // Only those that count subjects.
    const choices = "document.querySelector('select[name=limit]').textContent"
    expect(await page.evaluate(choices)).toBe('standard: 100 in 60 s')
    await page.send('Page.close')
  })

  testOnNode('with the keyboard: give acme 200 requests a minute', async () => {
    const page = await open('/-/console/limits')
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('Set a limit of a caller')
    await keyboard.enter()
    const choices = "document.querySelector('select[name=limit]').textContent"
    expect(await page.evaluate(choices)).toContain('tenants: 10 in 60 s, by tenant')
    await keyboard.tabTo('Limit')
    await page.send('Input.dispatchKeyEvent', { type: 'char', text: 't' })
    await keyboard.tabTo('Subject, client, tenant')
    await keyboard.type('acme')
    await keyboard.tabTo('Requests in each window')
    await keyboard.type('200')
    await keyboard.tabTo('Reason')
    await keyboard.type('a bigger contract')
    await keyboard.enter({ loads: true })
    expect(await textOf(page)).toMatch(/tenants\s+acme\s+200/)
    await page.send('Page.close')
  })

  testOnNode('with the keyboard: which key is this', async () => {
    const page = await open('/-/console/api-keys')
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('The complete key')
    await keyboard.type(key.secret)
    await keyboard.enter({ loads: true })
    expect(await textOf(page)).toContain('nightly report')
    expect(await page.evaluate('document.documentElement.outerHTML')).not.toContain(key.secret)
    expect(await page.evaluate('location.href')).not.toContain(key.secret)
    await page.send('Page.close')
  })

  testOnNode('with the keyboard: copy a new key', async () => {
    const page = await open('/-/console/api-keys')
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('Create an API key')
    await keyboard.enter()
    await keyboard.tabTo('Name')
    await keyboard.type('copied key')
    await keyboard.tabTo('Subject')
    await keyboard.type('reporter')
    await keyboard.tabTo('Reason')
    await keyboard.type('a new job')
    await keyboard.enter({ loads: true })
    expect(await textOf(page)).toContain('Created: the API key copied key of reporter.')
    await keyboard.tabTo('Copy')
    await keyboard.enter()
    // Whether a browser without a window lets a page write its clipboard is up to the browser.
    await expect
      .poll(() => textOf(page))
      .toMatch(/Copied\.|The browser does not allow it: press Ctrl\+C or Cmd\+C\./)
    const secret = await page.evaluate<string>("document.getElementById('secret').value")
    expect(secret).toMatch(/^pk_/)
    // For Ctrl+C.
    expect(await page.evaluate('getSelection().toString()')).toBe(secret)
    await page.send('Page.close')
  })

  testOnNode('with the keyboard: which tools changed', async () => {
    const page = await open('/-/console')
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('MCP')
    await keyboard.enter({ loads: true })
    expect(await textOf(page)).toMatch(
      /MCP servers\s+1 tool of \/mcp changed since it was approved: list_shelves\.[\s\S]*sponsor/,
    )
    await page.send('Page.close')
  })

  testOnNode('the overview updates itself, until the visitor stops it', async () => {
    const page = await open('/-/console?last=24h')
    const isoTime = () => page.evaluate<string>("document.querySelector('#figures time').dateTime")
    const first = await isoTime()
    await expect.poll(isoTime).not.toBe(first)
    expect(await textOf(page)).toContain('permission_missing:orders:write')
    // The rate of all gateways needs two readings of the shared counters.
    await expect.poll(() => textOf(page)).toMatch(/Now\s+\d/)
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('Stop updating')
    await keyboard.enter()
    expect(await textOf(page)).toContain('Stopped.')
    await page.send('Page.close')
  })

  testOnNode('a browser that leaves frees its stream for the next one', async () => {
    const statuses: number[] = []
    for (let visit = 0; visit < 6; visit += 1) {
      const leave = new AbortController()
      const headers = { Cookie: cookie.join('='), Accept: 'text/event-stream' }
      const { signal } = leave
      const response = await fetch(`${server.url}/-/console/overview/stream`, { headers, signal })
      statuses.push(response.status)
      await response.body?.getReader().read()
      leave.abort()
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200])
  })

  test.runIf(runtime === 'Node')('follows new decisions in the browser', async () => {
    const page = await open('/-/console/decisions?last=24h')
    const keyboard = keyboardOf(page)
    await keyboard.tabTo('Follow new decisions')
    await keyboard.enter()
    await expect.poll(() => textOf(page)).toContain('New decisions appear at the top.')
    const token = await server.token({ claims: { sub: 'newcomer', roles: ['reader'] } })
    await fetch(`${server.url}/orders`, { headers: { Authorization: `Bearer ${token}` } })
    await expect.poll(() => textOf(page)).toContain('newcomer')
    await page.send('Page.close')
  })
})
