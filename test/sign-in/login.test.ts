/** Login, session and logout with a certified provider, on each runtime. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../src/sign-in/session.ts'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

describe.each(RUNTIMES)('sign-in on %s', (runtime) => {
  let gateway: SignInGateway
  let browser: UserAgent
  beforeAll(async () => {
    gateway = await startGateway({ runtime })
  })
  afterAll(() => gateway?.close())
  beforeEach(() => {
    browser = createUserAgent()
    gateway.reached.length = 0
    Object.assign(gateway.provider.user, { subject: 'alice', roles: ['reader'], acr: undefined })
  })
  const at = (path: string) => gateway.url + path
  const session = () => browser.jarOf(gateway.url).get(SESSION_COOKIE)

  test('a deep link leads to the provider and back to the page', async () => {
    const visit = await browser.visit(at('/orders/7?limit=3'))
    expect(visit.status).toBe(200)
    expect(visit.url).toBe(at('/orders/7?limit=3'))
    expect(visit.text).toContain('"subject":"alice"')
    expect(visit.path.slice(0, 3)).toEqual(['/orders/7', '/oauth/sign-in', '/auth'])
    expect(visit.path.slice(-2)).toEqual(['/oauth/callback', '/orders/7'])
    expect(session()).toMatch(/^pcs_/)
    expect(browser.jarOf(gateway.url).get('theme')).toBe('dark')
    expect(gateway.reached).toHaveLength(1)
  })

  test('a fetch without a session gets a problem document, and does not reach the origin', async () => {
    const response = await browser.send(at('/orders'), { headers: { 'sec-fetch-mode': 'cors' } })
    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ code: 'sign_in_required' })
    expect(gateway.reached).toHaveLength(0)
  })

  test('after the sign-out, the session is refused', async () => {
    await browser.visit(at('/orders'))
    const reference = session()
    const signedOut = await browser.visit(at('/oauth/sign-out'), /^$/, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    expect(signedOut.text).toContain('You are signed out')
    expect(session()).toBeUndefined()
    gateway.reached.length = 0
    const response = await browser.send(at('/orders'), {
      headers: { cookie: `${SESSION_COOKIE}=${reference}` },
    })
    expect(response.status).toBe(401)
    expect(gateway.reached).toHaveLength(0)
  })
})
