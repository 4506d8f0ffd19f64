/** What a page of the gateway must never have, in a real browser. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserEvent, Page } from './chromium.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** The size of the window, and the colors that the person prefers. */
export type View = readonly [name: string, width: number, height: number, 'light' | 'dark']

export const VIEWS: readonly View[] = [
  ['a desktop in light', 1280, 800, 'light'],
  ['a desktop in dark', 1280, 800, 'dark'],
  ['a phone in light', 390, 844, 'light'],
  ['a phone in dark', 390, 844, 'dark'],
]

export interface Findings {
  readonly title: string
  readonly axe: readonly string[]
  readonly errors: readonly string[]
  readonly otherHosts: readonly string[]
  /** How many pixels the page is wider than the window. */
  readonly overflow: number
}

/** A window that loads pages one after the other, which costs less than a window for each. */
export interface Window {
  readonly page: Page
  load(url: string): Promise<void>
  /** Loads a page and returns its faults. */
  findFaults(url: string): Promise<Findings>
  close(): Promise<void>
}

/** Opens a window. `cookies` are of the host of `url`. */
export async function openWindow(
  browser: Browser,
  url: string,
  [, width, height, scheme]: View,
  cookies: Iterable<readonly [string, string]>,
): Promise<Window> {
  const page = await browser.open('about:blank', width, height)
  await page.send('Emulation.setEmulatedMedia', {
    features: [{ name: 'prefers-color-scheme', value: scheme }],
  })
  for (const [name, value] of cookies)
    await page.send('Network.setCookie', { name, value, url, secure: true, path: '/' })

  async function load(to: string): Promise<void> {
    const loaded = count(page.events, 'Page.loadEventFired')
    await page.send('Page.navigate', { url: to })
    while (count(page.events, 'Page.loadEventFired') === loaded)
      await new Promise((done) => setTimeout(done, 10))
  }

  return {
    page,
    load,
    async findFaults(to) {
      const earlier = page.events.length
      await load(to)
      await page.evaluate(`${AXE}; 0`)
      const found = await page.evaluate<Findings>(`(async () => {
        const { violations } = await axe.run({ runOnly: ${JSON.stringify(RULES)}, resultTypes: ['violations'], preload: false })
        return {
          title: document.title,
          axe: violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)),
          overflow: document.documentElement.scrollWidth - innerWidth,
        }
      })()`)
      const { host } = new URL(to)
      const events = page.events.slice(earlier)
      const requested = events
        .filter(({ method }) => method === 'Network.requestWillBeSent')
        .map(({ params }) => (params.request as { readonly url: string }).url)
      return {
        ...found,
        errors: events.filter(isError).map(({ params }) => JSON.stringify(params)),
        otherHosts: requested.filter(
          (one) => !one.startsWith('data:') && new URL(one).host !== host,
        ),
      }
    },
    async close() {
      await page.send('Page.close')
    },
  }
}

/** Loads one page in a window of its own and returns its faults. */
export async function findFaults(
  browser: Browser,
  url: string,
  view: View,
  cookies: Iterable<readonly [string, string]>,
): Promise<Findings> {
  const window = await openWindow(browser, url, view, cookies)
  const findings = await window.findFaults(url)
  await window.close()
  return findings
}

const count = (events: readonly BrowserEvent[], name: string) =>
  events.filter(({ method }) => method === name).length

/** Not the line that the browser writes for each status above 399. */
const isError = ({ method, params }: BrowserEvent): boolean =>
  method === 'Runtime.exceptionThrown' ||
  (method === 'Log.entryAdded' &&
    (params.entry as { level: string; source: string }).level === 'error' &&
    (params.entry as { level: string; source: string }).source !== 'network')
