/** The official clients, with a user who logs in and consents in a real browser. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, CHROMIUM, startChromium } from '../../harness/chromium.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { type Login, startLogin } from './login.ts'
import { SDKS, Store } from './sdk-clients.ts'

describe.skipIf(CHROMIUM === undefined)('a login in Chromium, at the gateway', () => {
  let login: Login
  let app: TestServer
  let browser: Browser
  /** The answers that returned to the app. */
  const answers: URLSearchParams[] = []
  beforeAll(async () => {
    login = await startLogin('the gateway')
    app = await startHttpServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://app.test')
      if (pathname === '/callback') answers.push(searchParams)
      response.setHeader('Content-Type', 'text/html').end('<title>Done</title>')
    })
    browser = startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.close()
    await login?.close()
  })

  test.each(
    Object.entries(SDKS).flatMap(([name, sdk]) => [
      [name, 'registers itself', sdk, undefined] as const,
      [name, 'names the URL of its metadata', sdk, () => login.documentUrl] as const,
    ]),
  )('%s %s, and calls a tool after the consent', async (_, _how, sdk, documentUrl) => {
    const store = new Store(`${app.url}/callback`)
    store.clientMetadataUrl = documentUrl?.()
    const create = () => {
      const client = new sdk.Client({ name: 'test', version: '1.0.0' })
      return { client, transport: new sdk.Transport(new URL(login.url), { authProvider: store }) }
    }
    const { client, transport } = create()
    login.calls.length = 0
    answers.length = 0
    await expect(client.connect(transport)).rejects.toThrow(sdk.UnauthorizedError)
    const page = await browser.open(String(store.visits[0]), 800, 900)
    await expect
      .poll(() => page.evaluate('document.querySelector("h1")?.textContent ?? ""'))
      .toBe('Allow access?')
    expect(login.calls).toEqual([])
    await page.evaluate('document.querySelector("button[value=allow]").click()')
    await expect.poll(() => answers[0]?.get('code')).toBeTruthy()
    await transport.finishAuth(answers[0]?.get('code'), answers[0]?.get('iss'))
    const next = create()
    await next.client.connect(next.transport)
    const { content } = await next.client.callTool({ name: 'list_shelves', arguments: {} })
    expect(content[0]?.text).toBe('fiction, history')
    await next.client.close()
  })
})
