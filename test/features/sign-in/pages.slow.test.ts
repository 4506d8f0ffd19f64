/**
 * The pages that people see, in a real browser: for every eye, every screen and every keyboard. With
 * `UPDATE_SCREENSHOTS=1`, it writes the pictures of the documentation.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { german } from '../../../src/features/languages/german.ts'
import { type Browser, CHROMIUM, type Chromium, startChromium } from '../../harness/chromium.ts'
import { RUNTIMES } from '../../harness/gateway.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { IS_LONG, usualOrLong } from '../../harness/long.ts'
import {
  findFaults,
  NO_FAULT,
  openWindow,
  TAKES_PICTURES,
  takePicture,
  VIEWS,
  type View,
  type Window,
} from '../../harness/page-check.ts'
import { startGatewayFor } from './gateway.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

const LOGO = `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><circle cx="2" cy="2" r="2" fill="#0a8f6a"/></svg>')}`

/** Each page with its title in English and German. */
const PAGES: readonly [string, string, string][] = [
  ['/oauth/sign-in?prompt=select_account', 'Sign in', 'Anmelden'],
  ['/oauth/sign-out', 'Sign out', 'Abmelden'],
  ['/oauth/signed-out', 'You are signed out', 'Sie sind abgemeldet'],
  ['/oauth/sessions', 'Your sessions', 'Ihre Sitzungen'],
  ['/oauth/callback?state=x', 'The sign-in has expired', 'Die Anmeldung ist abgelaufen'],
  [
    '/audit',
    'Your account has no access to this page',
    'Ihr Konto hat keinen Zugriff auf diese Seite',
  ],
  ['/nothing', 'This page does not exist', 'Diese Seite gibt es nicht'],
]

/** The pages are short. */
const SMALL_DESKTOP: View = ['a small desktop', 800, 560, 'light']
const [, , , PHONE_IN_DARK] = VIEWS
/** The pages in the documentation, by path: the name and the view of their picture. */
const PICTURED: ReadonlyMap<string, readonly [string, View]> = new Map([
  ['/oauth/sign-in?prompt=select_account', ['chooser', SMALL_DESKTOP]],
  ['/oauth/signed-out', ['signed-out', PHONE_IN_DARK ?? SMALL_DESKTOP]],
  ['/oauth/sessions', ['sessions', PHONE_IN_DARK ?? SMALL_DESKTOP]],
  ['/audit', ['no-access', SMALL_DESKTOP]],
])

const speak = ({ page }: Window, acceptLanguage: string) =>
  page.send('Network.setExtraHTTPHeaders', { headers: { 'Accept-Language': acceptLanguage } })

if (CHROMIUM === undefined) console.info('pages: skipped, because Chromium is missing')

const FAULTY = `<!doctype html><title>Faulty</title><p style="color:#eee;background:#fff;width:9999px">Some text</p>
<img src="http://localhost:1/x.png"><script>throw new Error('x')</script>`

/** The pages are the same on both runtimes. */
const RUNS = RUNTIMES.filter((runtime) => IS_LONG || runtime === 'Node')

let chromium: Chromium
beforeAll(() => {
  if (CHROMIUM !== undefined) chromium = startChromium()
})
afterAll(() => chromium?.close())

/** Has low contrast in dark only, and is too wide for a phone only. */
const FAULTY_IN_VIEWS = `<!doctype html><html lang="en"><title>Faulty</title><style>
@media (prefers-color-scheme: dark) { p { color: #222; background: #000 } } main { width: 600px }</style>
<main><p>Some text</p></main>`

describe.skipIf(CHROMIUM === undefined)('the check of pages', () => {
  test('finds what is wrong on some views only', async () => {
    const server = await startHttpServer((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(FAULTY_IN_VIEWS)
    })
    const browser = await chromium.openBrowser()
    try {
      const found = await findFaults(browser, server.url, VIEWS, [])
      const ids = found.map(({ axe }) => axe.map((fault) => fault.split(':')[0]))
      expect(ids).toEqual([[], ['color-contrast'], [], ['color-contrast']])
      expect(found.map(({ overflow }) => overflow > 0)).toEqual([false, false, true, true])
    } finally {
      await browser.close()
      await server.close()
    }
  })

  test('finds low contrast, a script that fails, a request to another host, and a wide page', async () => {
    const server = await startHttpServer((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(FAULTY)
    })
    const browser = await chromium.openBrowser()
    try {
      const [found] = await findFaults(browser, server.url, [VIEWS[0]], [])
      expect(found?.axe.join()).toMatch(/color-contrast.*image-alt|image-alt.*color-contrast/s)
      expect(found?.errors).toHaveLength(1)
      expect(found?.otherHosts).toEqual(['http://localhost:1/x.png'])
      expect(found?.overflow).toBeGreaterThan(0)
    } finally {
      await browser.close()
      await server.close()
    }
  })
})

describe.skipIf(CHROMIUM === undefined).each(RUNS)('the pages on %s', (runtime) => {
  let providers: readonly SigningProvider[]
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let browser: Browser
  let user: UserAgent
  beforeAll(async () => {
    providers = await Promise.all([startSigningProvider(), startSigningProvider()])
    gateway = await startGatewayFor(
      providers.map((provider, index) => ({
        provider,
        name: index === 0 ? 'Example staff' : 'Example partners',
        signIn: { callback: 'own', ...(index === 0 && { logo: LOGO }) },
      })),
      {
        runtime,
        definition: {
          roles: ['reader'],
          branding: {
            languages: [german],
            name: 'Tea',
            logo: LOGO,
            links: { privacy: '/privacy', terms: '/terms' },
          },
        },
      },
    )
    browser = await chromium.openBrowser()
    user = createUserAgent()
    const issuer = providers[0]?.issuer ?? ''
    const query = new URLSearchParams({ iss: issuer, return_to: '/orders' })
    const { status } = await user.visit(`${gateway.url}/oauth/sign-in?${query}`)
    expect(status).toBe(200)
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
    for (const provider of providers ?? []) await provider.close()
  })

  // Each run checks one view.
  const views = usualOrLong<readonly View[]>(VIEWS.slice(0, 1), VIEWS)
  test.each(['en', 'de-AT,de;q=0.9'])('have no fault in %s', async (language) => {
    const window = await openWindow(browser, gateway.url, VIEWS[0], user.jarOf(gateway.url))
    await speak(window, language)
    for (const [path, english, german] of PAGES) {
      const found = await window.findFaults(gateway.url + path, views)
      const title = `${language === 'en' ? english : german} - Tea`
      expect(found, path).toEqual(found.map(({ view }) => ({ view, title, ...NO_FAULT })))
      const [name, view] = PICTURED.get(path) ?? []
      if (TAKES_PICTURES && runtime === 'Node' && language === 'en' && name && view) {
        await window.show(view)
        await takePicture(window.page, 'sign-in', name, view)
      }
    }
    await window.close()
  })
})
