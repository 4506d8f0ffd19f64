/** The console in a real browser: for every eye and every screen. */
import { serve } from '@hono/node-server'
import { v7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anEvent } from '../../audit/event.ts'
import { type Browser, CHROMIUM, startChromium } from '../../harness/chromium.ts'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { findFaults, VIEWS } from '../../harness/page-check.ts'
import { freePort } from '../../harness/process.ts'
import { startConsole } from './gateway.ts'

const PAGES: readonly [string, string][] = [
  ['/-/console', 'Overview'],
  ['/-/console/decisions', 'Decisions'],
  ['/-/console/callers?kind=subject&value=alice', 'alice'],
  ['/-/console/policy', 'Policy'],
]

if (CHROMIUM === undefined) console.info('console: skipped, because Chromium is missing')

describe.skipIf(CHROMIUM === undefined)('the pages of the console', () => {
  let gateway: Awaited<ReturnType<typeof startConsole>>
  let server: ReturnType<typeof serve>
  let browser: Browser
  let url = ''
  let cookie: readonly [string, string]
  beforeAll(async () => {
    gateway = await startConsole()
    const time = new Date(Date.now() - 60_000).toISOString()
    await gateway.store(
      (['allow', 'deny', 'error'] as const).map((decision) =>
        anEvent({ id: v7(), time, requestId: v7(), decision }),
      ),
    )
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    server = serve({
      port,
      hostname: '127.0.0.1',
      // Other files of this process need the classes of Node.
      overrideGlobalObjects: false,
      // The browser's requests, with the address and the origin of the gateway.
      fetch(request) {
        const headers = new Headers(request.headers)
        headers.set('CF-Connecting-IP', '192.0.2.1')
        return gateway.isolateFetch(new Request(request.url.replace(url, PUBLIC_URL), { headers }))
      },
    })
    browser = startChromium()
    const [name = '', value = ''] = (await gateway.cookieOf({ roles: ['operator'] })).split('=')
    cookie = [name, value]
  })
  afterAll(async () => {
    await browser?.close()
    server?.close()
    await gateway?.close()
  })

  test.each(VIEWS)('have no fault on %s', async (...view) => {
    for (const [path, title] of PAGES)
      expect(await findFaults(browser, url + path, view, [cookie]), path).toEqual({
        title: expect.stringContaining(title),
        axe: [],
        errors: [],
        otherHosts: [],
        overflow: 0,
      })
  })
})
