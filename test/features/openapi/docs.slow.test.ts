/**
 * The page of the gateway's calls in a real browser. With `UPDATE_SCREENSHOTS=1`, it writes the pictures of the
 * documentation.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import policy from '../../../portcullis.config.ts'
import { type Browser, CHROMIUM, type Page, startChromium } from '../../harness/chromium.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'
import { usualOrLong } from '../../harness/long.ts'
import {
  NO_FAULT,
  openWindow,
  TAKES_PICTURES,
  takePicture,
  VIEWS,
  type View,
} from '../../harness/page-check.ts'

const CLIENT = { CLIENT_ID: '0190f8a0-7c3a-7000-8000-000000000001', CLIENT_SECRET: 'x'.repeat(43) }
const SHOWN = 'document.querySelectorAll(".call:not([hidden])").length'
const STYLES = `['curl', 'fetch'].map((name) =>
  getComputedStyle(document.querySelector('#createBan .' + name)).display)`

if (CHROMIUM === undefined) console.info('docs: skipped, because Chromium is missing')

describe.skipIf(CHROMIUM === undefined)('the page of the calls', () => {
  let gateway: TestGateway
  let browser: Browser
  beforeAll(async () => {
    gateway = await startGateway({
      ...{ runtime: 'Node', policy, publicUrl: 'own', signs: true },
      variables: {
        CLIENTS: JSON.stringify([
          {
            id: CLIENT.CLIENT_ID,
            grants: ['client_credentials'],
            secretSha256: createHash('sha256').update(CLIENT.CLIENT_SECRET).digest('base64url'),
          },
        ]),
      },
    })
    browser = startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
  })

  const open = (view: View = VIEWS[0]) => openWindow(browser, gateway.url, view, [])
  const opened = (page: Page, id: string) =>
    page.evaluate<boolean>(`document.getElementById('${id}').closest('details').open`)

  const screens: readonly (readonly [string, readonly View[]])[] = [
    ['a desktop', VIEWS.slice(0, usualOrLong(1, 2))],
    ['a phone', VIEWS.slice(2)],
  ]
  test.each(usualOrLong(screens.slice(0, 1), screens))(
    'has no fault on %s, closed and open, and is not long',
    async (_, views) => {
      const window = await open(views[0])
      const { page } = window
      const none = views.map(([view]) => ({ view, title: 'Portcullis: calls', ...NO_FAULT }))
      expect(await window.findFaults(`${gateway.url}/-/docs`, views)).toEqual(none)
      const height = await page.evaluate<number>('document.documentElement.scrollHeight')
      expect(height).toBeLessThan(9_000)
      expect(await window.findFaults(`${gateway.url}/-/docs?at=1#createBan`, views)).toEqual(none)
      expect(await opened(page, 'createBan')).toBe(true)
      for (const view of TAKES_PICTURES ? views : []) {
        await window.show(view)
        await takePicture(page, 'docs', 'docs', view)
      }
      await window.close()
    },
  )

  test('finds calls by words, and shows the examples that the reader chooses', async () => {
    const window = await open()
    const { page } = window
    await window.load(`${gateway.url}/-/docs`)
    const all = await page.evaluate<number>(SHOWN)
    expect(all).toBeGreaterThan(30)
    const search = (text: string) =>
      page.evaluate(`{ const box = document.querySelector('[type=search]')
        box.value = ${JSON.stringify(text)}; box.dispatchEvent(new Event('input')) } 0`)
    await search('create BAN')
    expect(await page.evaluate<number>(SHOWN)).toBeLessThan(all / 3)
    expect(await page.evaluate('document.querySelector("[role=status]").textContent')).toMatch(
      /^\d+ calls?$/,
    )
    const isFound = (id: string) =>
      page.evaluate(`!document.getElementById('${id}').closest('.call').hidden`)
    for (const form of ['revoked', 'revoking', 'revocations']) {
      await search(form)
      expect([form, await isFound('createRevocation')]).toEqual([form, true])
      expect([form, await isFound('createClient')]).toEqual([form, false])
    }
    await search('')
    expect(await page.evaluate<number>(SHOWN)).toBe(all)
    const styles = () => page.evaluate(STYLES)
    expect(await styles()).toEqual(['block', 'none'])
    await page.evaluate('document.getElementById("fetch").click()')
    expect(await styles()).toEqual(['none', 'block'])
    await window.close()
  })

  test('says how to get the token of its examples, and fits 320 pixels', async () => {
    const small: View = ['a small phone', 320, 568, 'light']
    const window = await open(small)
    const [found] = await window.findFaults(`${gateway.url}/-/docs#createBan`, [small])
    expect(found).toMatchObject({ axe: [], errors: [], overflow: 0 })
    const text = await window.page.evaluate<string>(
      'document.querySelector("main pre").textContent',
    )
    await window.close()
    const use = `curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $TOKEN"`
    const script = `${text}\n${use} "$PORTCULLIS_URL/-/admin/bans"`
    const env = { ...process.env, ...CLIENT }
    // 403: the token is valid, and its client has no permission.
    expect((await promisify(execFile)('sh', ['-c', script], { env })).stdout).toBe('403')
  })

  test('is complete without its script', async () => {
    const window = await open()
    const { page } = window
    await page.send('Emulation.setScriptExecutionDisabled', { value: true })
    await window.load(`${gateway.url}/-/docs#createBan`)
    expect(await page.evaluate('document.querySelector("[type=search]").checkVisibility()')).toBe(
      false,
    )
    expect(await opened(page, 'createBan')).toBe(true)
    await window.close()
  })
})
