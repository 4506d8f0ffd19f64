/** Sessions on several hosts of one policy: each has its own cookie, and one login is behind all of them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { freePort } from '../../harness/process.ts'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { startProvider, type TestProvider } from './provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

const NAVIGATION = {
  accept: 'text/html',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
}
const ALL_PATHS = [
  '/cart',
  '/oauth/sign-in',
  '/oauth/hand-over',
  '/oauth/sign-in',
  '/auth',
  expect.stringMatching(/^\/log-in\//),
  expect.stringMatching(/^\/auth\//),
  '/oauth/callback',
  '/oauth/hand-over',
  '/oauth/handed-over',
  '/cart',
]

describe.each(RUNTIMES)('sessions on several hosts on %s [S76]', (runtime) => {
  let provider: TestProvider
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let home = ''
  let shop = ''
  let desk = ''
  beforeAll(async () => {
    const port = await freePort()
    home = `http://127.0.0.1:${port}`
    shop = `http://shop.localhost:${port}`
    desk = `http://desk.apps.localhost:${port}`
    provider = await startProvider(home)
    gateway = await startGatewayFor([{ provider, name: 'Example' }], {
      runtime,
      port,
      policy: { hosts: true },
    })
  })
  afterAll(() => Promise.all([gateway?.close(), provider?.close()]))
  beforeEach(async () => {
    await gateway.redis.direct.flushall()
    gateway.reached.length = 0
    Object.assign(provider.user, { subject: 'alice', roles: ['reader'], acr: undefined })
  })

  const sessionAt = (browser: UserAgent, host: string) => browser.jarOf(host).get(SESSION_COOKIE)
  /** Returns a browser with a session at each host. */
  async function signedIn(hosts = [home, shop, desk]) {
    const browser = createUserAgent()
    for (const host of hosts)
      expect((await browser.visit(`${host}/${host === home ? 'orders' : 'cart'}`)).status).toBe(200)
    gateway.reached.length = 0
    return browser
  }
  /** Returns where the host of `PUBLIC_URL` sends a browser that comes from a host: with a code. */
  async function codeFor(browser: UserAgent, host: string) {
    const { url } = await browser.visit(`${host}/cart`, /\/oauth\/handed-over\?/)
    expect(url).toMatch(`${host}/oauth/handed-over?code=`)
    return url
  }
  /** Fails unless the sessions of all hosts are refused, without reaching the origin. */
  async function expectEnded(browser: UserAgent) {
    for (const host of [home, shop, desk]) {
      const response = await browser.send(`${host}/${host === home ? 'orders' : 'cart'}`)
      expect([host, response.status]).toEqual([host, 401])
    }
    expect(gateway.reached).toHaveLength(0)
  }
  /** Fails if a load of a page opens a session at a host. */
  async function expectRefused(browser: UserAgent, url: string, title: string) {
    const { status, text, headers } = await browser.visit(url)
    expect([status, text]).toEqual([400, expect.stringContaining(title)])
    expect(headers.getSetCookie().join()).not.toContain(SESSION_COOKIE)
    expect(gateway.reached).toHaveLength(0)
  }
  const rest = () => createRedisRest({ ...gateway.redis, timeoutMs: 20_000 })

  test('a login at PUBLIC_URL opens a session at the host that asks, with a cookie of its own', async () => {
    const browser = createUserAgent()
    const { status, path, text } = await browser.visit(`${shop}/cart?item=1&q=a%20b`)
    expect([status, path]).toEqual([200, ALL_PATHS])
    expect(text).toContain('"path":"/cart?item=1&q=a%20b"')
    expect(text).toContain('"subject":"alice"')
    expect(sessionAt(browser, shop)).toMatch(/^pcb_/)
    expect(sessionAt(browser, home)).toMatch(/^pcb_/)
    expect(sessionAt(browser, shop)).not.toBe(sessionAt(browser, home))
  })

  test('pages of a host see no devices of the user, and end no session of another host', async () => {
    const browser = await signedIn()
    const headers = { accept: 'application/json' }
    const listed = await browser.send(`${home}/oauth/sessions`, { headers })
    const { sessions } = (await listed.json()) as { sessions: { id: string }[] }
    const id = sessions[0]?.id ?? ''
    const own = { 'sec-fetch-site': 'same-origin' }
    expect((await browser.send(`${shop}/oauth/sessions`, { headers })).status).toBe(404)
    for (const [path, method] of [
      [`/oauth/sessions/${id}`, 'DELETE'],
      ['/oauth/sessions', 'POST'],
    ] as const) {
      const headers = { ...own, 'content-type': 'application/x-www-form-urlencoded' }
      const body = method === 'POST' ? `session=${id}` : null
      expect((await browser.send(shop + path, { method, headers, body })).status).toBe(404)
    }
    const page = await browser.send(`${shop}/oauth/sessions`, { headers: NAVIGATION })
    expect([page.status, page.headers.get('location')]).toEqual([303, `${home}/oauth/sessions`])
    expect((await browser.send(`${home}/orders`)).status).toBe(200)
  })

  test('a session of another host opens no route of every host', async () => {
    const browser = await signedIn()
    const { status } = await browser.send(`${shop}/orders`, { headers: NAVIGATION })
    expect([status, gateway.reached]).toEqual([404, []])
  })

  test('cookies of hosts have no domain, and only secure ones with the prefix __Host- are set', async () => {
    const browser = createUserAgent()
    const url = await codeFor(browser, shop)
    const asked = await createUserAgent().send(`${shop}/oauth/sign-in`)
    const taken = await browser.send(url, { headers: NAVIGATION })
    for (const cookie of [...asked.headers.getSetCookie(), ...taken.headers.getSetCookie()])
      expect(cookie).toMatch(
        /^__Host-[^;]+; Path=\/; Secure; HttpOnly; SameSite=Lax(; Max-Age=900)?$/,
      )
    expect(taken.headers.getSetCookie()).toHaveLength(1)
    expect(taken.headers.get('cache-control')).toContain('no-store')
  })

  test('a second host needs no second login, and the user sees one session', async () => {
    const browser = await signedIn([home])
    provider.calls.length = 0
    expect((await browser.visit(`${shop}/cart`)).status).toBe(200)
    expect((await browser.visit(`${desk}/cart`)).status).toBe(200)
    expect(provider.calls).toEqual([])
    const headers = { accept: 'application/json' }
    const listed = await browser.send(`${home}/oauth/sessions`, { headers })
    expect(await listed.json()).toEqual({
      sessions: [expect.objectContaining({ current: true })],
    })
  })

  test('a request with a session of another host costs one call to Redis', async () => {
    const browser = await signedIn()
    for (const host of [shop, home]) {
      const before = gateway.redis.decisions()
      expect((await browser.send(`${host}/${host === home ? 'orders' : 'cart'}`)).status).toBe(200)
      expect(gateway.redis.decisions() - before).toBe(1)
    }
  })

  test.each(['home', 'shop', 'desk'])(
    'a logout at the host %s ends the sessions of all',
    async (name) => {
      const browser = await signedIn()
      const host = { home, shop, desk }[name] ?? ''
      const headers = { 'sec-fetch-site': 'same-origin' }
      const out = await browser.send(`${host}/oauth/sign-out`, { method: 'POST', headers })
      expect(out.status).toBe(303)
      await expectEnded(browser)
      expect(await gateway.redis.direct.keys('pc:*reference:*')).toEqual([])
    },
  )

  test('a back-channel logout, by user or session, ends the sessions of all hosts', async () => {
    const byUser = await signedIn()
    const token = await provider.logoutToken({ sub: 'alice' })
    const body = new URLSearchParams({ logout_token: token }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await fetch(`${home}/oauth/backchannel-logout`, {
      method: 'POST',
      headers,
      body,
    })
    expect(answer.status).toBe(200)
    await expectEnded(byUser)
  })

  test('a cutoff of the user ends the sessions of all hosts, and nothing is handed over', async () => {
    const browser = await signedIn()
    await createRevocations(rest(), Date.now).revokeBefore({
      kind: 'subject',
      issuer: provider.issuer,
      value: 'alice',
      atSeconds: Math.floor(Date.now() / 1000),
      ttlSeconds: 60,
    })
    await expectEnded(browser)
    const { path } = await browser.visit(`${shop}/cart`, /\/auth\?/)
    expect(path).toEqual(ALL_PATHS.slice(0, 4))
  })

  test('a code is used once, also by many requests at the same time', async () => {
    const browser = createUserAgent()
    const url = await codeFor(browser, shop)
    const cookie = [...browser.jarOf(shop)].map((pair) => pair.join('=')).join('; ')
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        createUserAgent().send(url, { headers: { cookie, ...NAVIGATION } }),
      ),
    )
    const opened = answers.filter(({ headers }) => headers.getSetCookie().join().includes('pcb_'))
    expect(opened).toHaveLength(1)
    expect(answers.map(({ status }) => status).sort()).toEqual([303, ...Array(9).fill(400)])
    await browser.visit(`${shop}/cart`)
    const again = await browser.send(url, { headers: NAVIGATION })
    expect([again.status, again.headers.get('location'), again.headers.getSetCookie()]).toEqual([
      303,
      '/',
      [],
    ])
  })

  test('a code lives for a minute at most', async () => {
    await codeFor(createUserAgent(), shop)
    const [key = ''] = await gateway.redis.direct.keys('pc:hand-over:*')
    expect(await gateway.redis.direct.ttl(key)).toBeLessThanOrEqual(60)
  })

  test('a code for another host opens no session there, and none at its own host afterwards', async () => {
    const browser = createUserAgent()
    await browser.visit(`${desk}/cart`, /hand-over/)
    const url = await codeFor(browser, shop)
    await expectRefused(browser, url.replace(shop, desk), 'This link is not valid')
    await expectRefused(browser, url, 'The sign-in has expired')
    expect(sessionAt(browser, shop)).toBeUndefined()
  })

  test('a code in another browser opens no session: a user cannot be signed in as another one', async () => {
    const attacker = createUserAgent()
    const url = await codeFor(attacker, shop)
    const victim = createUserAgent()
    // The victim is about to sign in at the same host.
    await victim.visit(`${shop}/cart`, /hand-over/)
    await expectRefused(victim, url, 'The sign-in was started elsewhere')
    await expectRefused(attacker, url, 'The sign-in has expired')
    const without = await codeFor(createUserAgent(), shop)
    await expectRefused(createUserAgent(), without, 'The sign-in was started elsewhere')
  })

  test('a link that an attacker has made hands nothing over to the attacker', async () => {
    const attacker = createUserAgent()
    const { url: link } = await attacker.visit(`${shop}/cart`, /hand-over/)
    const victim = await signedIn([home])
    const { url } = await victim.visit(link, /handed-over/)
    await expectRefused(victim, url, 'The sign-in was started elsewhere')
    await expectRefused(attacker, url, 'The sign-in has expired')
  })

  test('only hosts of the policy get a code, and no text of a request becomes an address', async () => {
    const browser = await signedIn([home])
    const { url } = await browser.visit(`${shop}/cart`, /hand-over/)
    const names = [
      'evil.example',
      'shop.localhost.evil.example',
      'shop.localhost:8080',
      'SHOP.localhost',
      'shop.localhost.',
      'shop.localhost@evil.example',
      'evil.example/.apps.localhost',
      'evil.example#.apps.localhost',
      'a.b.apps.localhost',
      '*.apps.localhost',
      '.apps.localhost',
      'apps.localhost',
      '127.0.0.1',
      '',
    ]
    for (const name of names) {
      const link = new URL(url)
      link.searchParams.set('host', name)
      const { status, url: at } = await browser.visit(link.href)
      expect([name, status, at]).toEqual([name, 400, link.href])
    }
    const twice = await browser.visit(`${url}&host=evil.example`)
    expect([twice.status, await gateway.redis.direct.keys('pc:hand-over:*')]).toEqual([400, []])
  })

  test('a browser comes back to a path of the asking host only', async () => {
    for (const target of [
      '//evil.example',
      'https://evil.example/',
      '/\\evil.example',
      '/oauth/handed-over',
    ]) {
      const query = new URLSearchParams({ return_to: target })
      const browser = createUserAgent()
      const { path, url } = await browser.visit(`${shop}/oauth/sign-in?${query}`)
      expect([target, path.at(-2), new URL(url).origin]).toEqual([
        target,
        '/oauth/handed-over',
        shop,
      ])
      expect(new URL(url).pathname).toBe('/')
    }
    const long = `/cart?q=${'a'.repeat(4_000)}`
    const { path } = await createUserAgent().visit(`${shop}${long}`)
    expect(path.slice(-2)).toEqual(['/oauth/handed-over', '/'])
  })

  test('a session that ends before its code is used opens no session', async () => {
    const browser = await signedIn([home])
    const url = await codeFor(browser, shop)
    const headers = { 'sec-fetch-site': 'same-origin' }
    await browser.send(`${home}/oauth/sign-out`, { method: 'POST', headers })
    await expectRefused(browser, url, 'You are not signed in')
    expect(await gateway.redis.direct.keys('pc:*reference:*')).toEqual([])
  })

  test('a session that was chosen before the login is not used by it', async () => {
    provider.user.subject = 'mallory'
    const attacker = await signedIn([home, shop])
    const chosen = sessionAt(attacker, shop) ?? ''
    provider.user.subject = 'alice'
    const victim = await signedIn([home])
    victim.jarOf(shop).set(SESSION_COOKIE, chosen)
    const { text } = await victim.visit(`${shop}/oauth/sign-in?return_to=/cart`)
    expect(text).toContain('"subject":"alice"')
    expect(sessionAt(victim, shop)).not.toBe(chosen)
    expect((await attacker.send(`${shop}/cart`)).status).toBe(401)
  })

  test('a session of one host is refused at another one, and hands nothing over', async () => {
    const browser = await signedIn()
    const thief = createUserAgent()
    thief.jarOf(home).set(SESSION_COOKIE, sessionAt(browser, shop) ?? '')
    thief.jarOf(desk).set(SESSION_COOKIE, sessionAt(browser, shop) ?? '')
    thief.jarOf(shop).set(SESSION_COOKIE, sessionAt(browser, home) ?? '')
    await expectEnded(thief)
    const { path } = await thief.visit(`${desk}/cart`, /\/auth\?/)
    expect(path).toEqual(ALL_PATHS.slice(0, 4))
    expect((await browser.send(`${shop}/cart`)).status).toBe(200)
  })

  test('a form is accepted from pages of its own host only', async () => {
    const browser = await signedIn()
    const post = async (origin: string) =>
      (await browser.send(`${shop}/cart`, { method: 'POST', headers: { origin } })).status
    expect(await post(home)).toBe(403)
    expect(await post(desk)).toBe(403)
    expect(gateway.reached).toHaveLength(0)
    expect(await post(shop)).toBe(200)
  })

  test('a route of a host that demands a stronger login gets one from PUBLIC_URL', async () => {
    const browser = await signedIn([home, shop])
    expect((await browser.visit(`${shop}/safe`)).status).toBe(403)
    expect(gateway.reached).toHaveLength(0)
    browser.jarOf(provider.issuer).clear()
    provider.user.acr = 'mfa'
    const { status, path } = await browser.visit(`${shop}/safe`)
    expect([status, path.includes('/oauth/callback')]).toEqual([200, true])
  })

  test('a frame or a script gets no code', async () => {
    const browser = await signedIn([home])
    const { url } = await browser.visit(`${shop}/cart`, /hand-over/)
    for (const fields of [{ 'sec-fetch-mode': 'cors' }, { 'sec-fetch-dest': 'iframe' }]) {
      const response = await browser.send(url, { headers: { ...NAVIGATION, ...fields } })
      expect([response.status, response.headers.get('location')]).toEqual([400, null])
    }
  })

  test('an outage of Redis is 503, and no host gets a session', async () => {
    const browser = createUserAgent()
    const url = await codeFor(browser, shop)
    gateway.redis.setAnswering(false)
    const answer = await browser.send(url, { headers: NAVIGATION })
    gateway.redis.setAnswering(true)
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([503, []])
    expect((await browser.visit(url)).status).toBe(200)
  })
})
