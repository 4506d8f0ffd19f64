/** What a page of the gateway must never have, in a real browser. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserEvent, Page } from './chromium.ts'
import { IS_LONG } from './long.ts'
import { ROOT } from './process.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** Those of them that depend on colors. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block']

/** The size of the window, and the colors that the person prefers. */
export type View = readonly [name: string, width: number, height: number, 'light' | 'dark']

export const VIEWS: readonly [View, ...View[]] = [
  ['a desktop in light', 1280, 800, 'light'],
  ['a desktop in dark', 1280, 800, 'dark'],
  ['a phone in light', 390, 844, 'light'],
  ['a phone in dark', 390, 844, 'dark'],
]

/** What a page without faults has, besides its view and title. */
export const NO_FAULT = { axe: [], errors: [], otherHosts: [], overflow: 0 }

export interface Findings {
  /** The name of the view. */
  readonly view: string
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
  /** Changes the view, and waits until the page shows it. */
  show(view: View): Promise<void>
  /**
   * Loads a page and returns its faults on each view. Continuous integration loads it once, and checks a view that
   * differs from the one before only in its colors by the rules of colors.
   */
  findFaults(url: string, views: readonly View[]): Promise<readonly Findings[]>
  close(): Promise<void>
}

/** Opens a window. `cookies` are of the host of `url`. */
export async function openWindow(
  browser: Browser,
  url: string,
  view: View,
  cookies: Iterable<readonly [string, string]>,
): Promise<Window> {
  const page = await browser.open('about:blank', view[1], view[2])
  async function show([, width, height, scheme]: View): Promise<void> {
    const screen = { width, height, deviceScaleFactor: 1, mobile: false }
    await page.send('Emulation.setDeviceMetricsOverride', screen)
    const features = [{ name: 'prefers-color-scheme', value: scheme }]
    await page.send('Emulation.setEmulatedMedia', { features })
    await page.evaluate(`(async () => {
      while (innerWidth !== ${width} || !matchMedia('(prefers-color-scheme: ${scheme})').matches)
        await new Promise((done) => setTimeout(done, 5))
      await Promise.all(document.getAnimations().map(({ finished }) => finished))
    })()`)
  }
  await show(view)
  for (const [name, value] of cookies)
    await page.send('Network.setCookie', { name, value, url, secure: true, path: '/' })

  async function load(to: string): Promise<void> {
    const loaded = count(page.events, 'Page.loadEventFired')
    await page.send('Page.navigate', { url: to })
    while (count(page.events, 'Page.loadEventFired') === loaded)
      await new Promise((done) => setTimeout(done, 10))
  }

  /** Loads a page, with axe. */
  async function open(to: string): Promise<void> {
    await load(to)
    await page.evaluate(`${AXE}; 0`)
  }

  /** Returns the faults of the loaded page. */
  async function check(rules: readonly string[]) {
    return page.evaluate<Pick<Findings, 'title' | 'axe' | 'overflow'>>(`(async () => {
      const { violations } = await axe.run({ runOnly: ${JSON.stringify(rules)}, resultTypes: ['violations'], preload: false })
      return {
        title: document.title,
        axe: violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)),
        overflow: document.documentElement.scrollWidth - innerWidth,
      }
    })()`)
  }

  /** Returns the errors and the requests to other hosts since an event of the page. */
  function log(to: string, earlier: number): Pick<Findings, 'errors' | 'otherHosts'> {
    const { host } = new URL(to)
    const events = page.events.slice(earlier)
    const requested = events
      .filter(({ method }) => method === 'Network.requestWillBeSent')
      .map(({ params }) => (params.request as { readonly url: string }).url)
    return {
      errors: events.filter(isError).map(({ params }) => JSON.stringify(params)),
      otherHosts: requested.filter((one) => !one.startsWith('data:') && new URL(one).host !== host),
    }
  }

  return {
    page,
    load,
    show,
    async findFaults(to, views) {
      const found: Findings[] = []
      let earlier = page.events.length
      let before: View | undefined
      for (const view of views) {
        await show(view)
        if (before === undefined || IS_LONG) {
          earlier = page.events.length
          await open(to)
        }
        const [name, width, height] = view
        const isSameSize = before?.[1] === width && before[2] === height
        const rules = isSameSize && !IS_LONG ? COLOR_RULES : RULES
        found.push({ view: name, ...(await check(rules)), ...log(to, earlier) })
        before = view
      }
      return found
    },
    async close() {
      await page.send('Page.close')
    },
  }
}

/** Loads one page in a window of its own and returns its faults, as {@link Window.findFaults} does. */
export async function findFaults(
  browser: Browser,
  url: string,
  views: readonly [View, ...View[]],
  cookies: Iterable<readonly [string, string]>,
): Promise<readonly Findings[]> {
  const window = await openWindow(browser, url, views[0], cookies)
  const findings = await window.findFaults(url, views)
  await window.close()
  return findings
}

/** Whether tests write the pictures of the documentation: with `UPDATE_SCREENSHOTS=1`. */
export const TAKES_PICTURES = process.env.UPDATE_SCREENSHOTS === '1'

/** Writes a picture of what a page shows: `folder/name-desktop-light.webp` in `docs/images`. */
export async function takePicture(
  page: Page,
  folder: string,
  name: string,
  [, width, , scheme]: View,
): Promise<void> {
  const path = join(ROOT, 'docs/images', folder)
  mkdirSync(path, { recursive: true })
  const file = `${name}-${width < 500 ? 'phone' : 'desktop'}-${scheme}.webp`
  const shot = await page.send('Page.captureScreenshot', { format: 'webp', quality: 50 })
  writeFileSync(join(path, file), Buffer.from(String(shot.data), 'base64'))
}

const count = (events: readonly BrowserEvent[], name: string) =>
  events.filter(({ method }) => method === name).length

/** Not the line that the browser writes for each status above 399. */
const isError = ({ method, params }: BrowserEvent): boolean =>
  method === 'Runtime.exceptionThrown' ||
  (method === 'Log.entryAdded' &&
    (params.entry as { level: string; source: string }).level === 'error' &&
    (params.entry as { level: string; source: string }).source !== 'network')
