/** Login, session and logout with a certified provider, on each runtime. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LOGIN_COOKIE_PREFIX } from '../../../src/features/sign-in/login.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

interface SessionView {
  readonly id: string
  readonly current: boolean
}

const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

describe.each(RUNTIMES)('sign-in on %s [S76]', (runtime) => {
  let gateway: SignInGateway
  let browser: UserAgent
  beforeAll(async () => {
    gateway = await startGateway({ runtime })
  })
  afterAll(() => gateway?.close())
  beforeEach(() => {
    browser = createUserAgent()
    gateway.reached.length = 0
    Object.assign(gateway.provider.user, {
      subject: 'alice',
      roles: ['reader'],
      acr: undefined,
      refuses: false,
    })
  })
  const at = (path: string) => gateway.url + path
  const session = (of = browser) => of.jarOf(gateway.url).get(SESSION_COOKIE)
  /** The code of the problem document, or the status of a success. */
  async function outcome(path: string, init: RequestInit = {}, of = browser) {
    const response = await of.send(at(path), init)
    const text = await response.text()
    return response.ok ? response.status : (JSON.parse(text) as { code: string }).code
  }
  const withCookie = (reference: string | undefined) => ({
    headers: { cookie: `${SESSION_COOKIE}=${reference}` },
  })

  test('a deep link leads to the provider and back to the page', async () => {
    const visit = await browser.visit(at('/orders/7?limit=3'))
    expect(visit.status).toBe(200)
    expect(visit.url).toBe(at('/orders/7?limit=3'))
    expect(visit.text).toContain('"subject":"alice"')
    expect(visit.path.slice(0, 3)).toEqual(['/orders/7', '/oauth/sign-in', '/auth'])
    expect(visit.path.slice(-2)).toEqual(['/oauth/callback', '/orders/7'])
    expect(session()).toMatch(/^pcb_/)
    expect(browser.jarOf(gateway.url).get('theme')).toBe('dark')
    expect(visit.headers.get('cache-control')).toBe('private')
    expect(gateway.reached).toHaveLength(1)
  })

  test('the session cookie is never sent to the origin, other cookies of the route are', async () => {
    await browser.visit(at('/cookies'))
    browser.jarOf(gateway.url).set('theme', 'light')
    await browser.send(at('/cookies'))
    const { cookie } = gateway.reached.at(-1)?.headers ?? {}
    expect(cookie).toContain('theme=light')
    expect(cookie).not.toContain('portcullis')
  })

  test('only the SHA-256 of the session is stored', async () => {
    await browser.visit(at('/orders'))
    const { direct } = gateway.redis
    for (const key of await direct.keys('*')) {
      const kind = await direct.type(key)
      const value =
        kind === 'string' ? await direct.get(key) : kind === 'hash' ? await direct.hgetall(key) : ''
      expect(key + JSON.stringify(value)).not.toContain(session())
    }
  })

  test('a request with a session makes one call to Redis, from the second one on', async () => {
    await browser.visit(at('/orders'))
    expect(await outcome('/orders')).toBe(200)
    const before = gateway.redis.calls()
    expect(await outcome('/orders')).toBe(200)
    expect(gateway.redis.calls() - before).toBe(1)
  })

  test('a fetch without a session gets a problem document, and does not reach the origin', async () => {
    for (const headers of [
      { 'sec-fetch-mode': 'cors' },
      { accept: 'application/json' },
      { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ])
      expect(await outcome('/orders', { headers })).toBe('sign_in_required')
    const post = await browser.send(at('/orders'), { method: 'POST', headers: SAME_ORIGIN })
    expect([post.status, post.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('Bearer'),
    ])
    expect(gateway.reached).toHaveLength(0)
  })

  test('a route without sessions ignores the cookie', async () => {
    await browser.visit(at('/orders'))
    expect(await outcome('/tokens-only')).toBe('missing_token')
    expect(await outcome('/open')).toBe(200)
  })

  test('a permission that the roles of the user do not have is missing', async () => {
    await browser.visit(at('/orders'))
    gateway.reached.length = 0
    expect(await outcome('/audit')).toBe('insufficient_permission')
    expect(gateway.reached).toHaveLength(0)
  })

  test('a session and a token together are refused', async () => {
    await browser.visit(at('/orders'))
    const headers = { authorization: 'Bearer x' }
    expect(await outcome('/orders', { headers })).toBe('ambiguous_credentials')
  })

  describe('a request that changes something', () => {
    const post = (headers: Record<string, string>) =>
      outcome('/orders', { method: 'POST', headers })

    test('is accepted from a page of the gateway only', async () => {
      await browser.visit(at('/orders'))
      gateway.reached.length = 0
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'none' },
        { 'sec-fetch-site': 'cross-site', origin: gateway.url },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        {},
      ] as Record<string, string>[])
        expect(await post(headers)).toBe('cross_origin_request')
      expect(gateway.reached).toHaveLength(0)
      expect(await post(SAME_ORIGIN)).toBe(200)
      expect(await post({ origin: gateway.url })).toBe(200)
    })
  })

  test('a route that demands a kind of login leads to such a login', async () => {
    await browser.visit(at('/orders'))
    const response = await browser.send(at('/strong'))
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toContain(
      'error="insufficient_user_authentication", acr_values="mfa"',
    )
    gateway.provider.user.acr = 'mfa'
    const visit = await browser.visit(`${at('/oauth/sign-in')}?return_to=%2Fstrong&prompt=login`)
    expect([visit.status, visit.url]).toEqual([200, at('/strong')])
  })

  test('a redirect to a stronger login gives the slot of its request back', async () => {
    await browser.visit(at('/orders'))
    const headers = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }
    const response = await browser.send(at('/strong'), { headers })
    expect([response.status, response.headers.get('location')]).toEqual([
      303,
      expect.stringContaining('acr_values=mfa'),
    ])
    const slots = () => gateway.redis.direct.keys('pc:limit:inFlight-concurrency:*')
    await expect.poll(slots).toEqual([])
  })

  test('a login that is not of the demanded kind ends with a page, not with a loop', async () => {
    gateway.provider.user.acr = 'pwd'
    const visit = await browser.visit(`${at('/oauth/sign-in')}?return_to=%2F&acr_values=mfa`)
    expect([visit.status, visit.text]).toEqual([403, expect.stringContaining('stronger')])
    expect(session()).toBeUndefined()
  })

  test('a login that the user refuses ends with a page', async () => {
    gateway.provider.user.refuses = true
    const visit = await browser.visit(at('/orders'))
    expect([visit.status, visit.text]).toEqual([403, expect.stringContaining('not signed in')])
    expect(gateway.reached).toHaveLength(0)
  })

  describe('login CSRF', () => {
    test('the callback of another browser is refused, and leaves the login to its own', async () => {
      const callback = /\/oauth\/callback/
      const attacker = await browser.visit(at('/orders'), callback)
      const victim = createUserAgent()
      expect((await victim.visit(attacker.url)).status).toBe(400)
      expect(session(victim)).toBeUndefined()
      // A victim with a login of its own.
      await victim.visit(at('/orders'), callback)
      expect((await victim.visit(attacker.url)).status).toBe(400)
      expect(session(victim)).toBeUndefined()
    })

    test('a callback works once, and not with another state, code or issuer', async () => {
      const { url } = await browser.visit(at('/orders'), /\/oauth\/callback/)
      for (const [name, value] of [
        ['state', 'x'],
        ['state', 'A'.repeat(43)],
        ['iss', 'https://evil.example'],
      ] as const) {
        const changed = new URL(url)
        changed.searchParams.set(name, value)
        const fresh =
          name === 'iss' ? await browser.visit(at('/orders'), /\/oauth\/callback/) : null
        const target = fresh === null ? changed : new URL(fresh.url)
        if (fresh !== null) target.searchParams.set(name, value)
        expect([name, (await browser.visit(target.href)).status]).toEqual([name, 400])
      }
      expect((await browser.visit(url)).status).toBe(200)
      const opened = session()
      // The second load goes on to the page. It opens no session, and needs one.
      expect((await browser.visit(url)).status).toBe(200)
      expect(session()).toBe(opened)
      browser.jarOf(gateway.url).delete(SESSION_COOKIE)
      expect((await browser.visit(url)).status).toBe(400)
      expect(session()).toBeUndefined()
    })

    test('a code of another login is refused', async () => {
      const one = await browser.visit(at('/orders'), /\/oauth\/callback/)
      const other = createUserAgent()
      const two = await other.visit(at('/orders'), /\/oauth\/callback/)
      const injected = new URL(one.url)
      injected.searchParams.set('code', new URL(two.url).searchParams.get('code') ?? '')
      expect((await browser.visit(injected.href)).status).toBe(400)
      expect(session()).toBeUndefined()
    })
  })

  test('a session that the browser had before the login is not used after it', async () => {
    await browser.visit(at('/orders'))
    const chosen = session()
    const again = await browser.visit(at('/oauth/sign-in?return_to=%2Forders&prompt=login'))
    expect([again.status, again.url]).toEqual([200, at('/orders')])
    expect(session()).not.toBe(chosen)
    expect(await outcome('/orders', withCookie(chosen))).toBe('sign_in_required')
  })

  test('several logins of one browser work side by side', async () => {
    const callback = /\/oauth\/callback/
    const first = await browser.visit(at('/orders/1'), callback)
    const second = await browser.visit(at('/orders/2'), callback)
    expect((await browser.visit(first.url)).url).toBe(at('/orders/1'))
    expect((await browser.visit(second.url)).url).toBe(at('/orders/2'))
    const names = [...browser.jarOf(gateway.url).keys()].sort()
    expect(names).toEqual([expect.stringContaining(LOGIN_COOKIE_PREFIX), SESSION_COOKIE, 'theme'])
  })

  test('an app with routes in its fragment gets its page back', async () => {
    const page = '/orders?a=1&b=https://c.example/%7C#/settings?tab=2'
    const path = `/oauth/sign-in?return_to=${encodeURIComponent(page)}`
    expect((await browser.visit(at(path))).url).toBe(at(page))
  })

  test('an open redirect is not possible', async () => {
    for (const target of ['https://evil.example/', '//evil.example', '/\\evil.example']) {
      const path = `/oauth/sign-in?return_to=${encodeURIComponent(target)}`
      expect((await browser.visit(at(path))).url).toBe(at('/'))
    }
  })

  test('a session of unknown, malformed or doubled references is refused', async () => {
    await browser.visit(at('/orders'))
    gateway.reached.length = 0
    const unknown = `pcb_${'A'.repeat(43)}`
    for (const reference of [unknown, 'x', '', `${session()}x`, `${session()} `])
      expect([reference, await outcome('/orders', withCookie(reference))]).toEqual([
        reference,
        reference.endsWith(' ') ? 200 : 'sign_in_required',
      ])
    const twice = `${SESSION_COOKIE}=${unknown}; ${SESSION_COOKIE}=${session()}`
    expect(await outcome('/orders', { headers: { cookie: twice } })).toBe('ambiguous_credentials')
  })

  test('after the sign-out, the session is refused and the provider is left too', async () => {
    await browser.visit(at('/orders'))
    const reference = session()
    const page = await browser.visit(at('/oauth/sign-out'))
    expect(page.headers.get('content-security-policy')).toMatch(
      new RegExp(`default-src 'none'.*form-action 'self' ${gateway.provider.issuer};`),
    )
    const denied = await browser.visit(at('/oauth/sign-out'), undefined, { method: 'POST' })
    expect(denied.status).toBe(403)
    const left = await browser.visit(at('/oauth/sign-out'), undefined, {
      method: 'POST',
      headers: SAME_ORIGIN,
    })
    expect(left.path).toEqual(['/oauth/sign-out', '/session/end'])
    expect(left.url).toContain('id_token_hint=')
    expect(session()).toBeUndefined()
    gateway.reached.length = 0
    expect(await outcome('/orders', withCookie(reference))).toBe('sign_in_required')
    expect(gateway.reached).toHaveLength(0)
    expect((await browser.visit(at('/oauth/signed-out'))).status).toBe(200)
  })

  test('a user lists sessions and ends one of them, but not one of another user', async () => {
    const other = createUserAgent()
    await other.visit(at('/orders'))
    await browser.visit(at('/orders'))
    const { text } = await browser.visit(at('/oauth/sessions'))
    const ids = [...text.matchAll(/name="session" value="([\w-]+)"/g)].map(([, id = '']) => id)
    expect(ids.length).toBeGreaterThanOrEqual(2)
    gateway.provider.user.subject = 'mallory'
    const mallory = createUserAgent()
    await mallory.visit(at('/orders'))
    const end = (of: UserAgent, id: string) =>
      of.visit(at('/oauth/sessions'), undefined, {
        method: 'POST',
        headers: { ...SAME_ORIGIN, 'content-type': 'application/x-www-form-urlencoded' },
        body: `session=${id}`,
      })
    for (const id of ids) expect((await end(mallory, id)).status).toBe(400)
    expect(await outcome('/orders', {}, other)).toBe(200)
    // Its own session last.
    const own = /value="([\w-]+)">\s*<p>[^<]*<br><small>[^<]*this browser/.exec(text)?.[1]
    for (const id of ids.filter((one) => one !== own)) await end(browser, id)
    expect(await outcome('/orders', {}, other)).toBe('sign_in_required')
    expect(await outcome('/orders')).toBe(200)
  })

  describe('cookie tossing', () => {
    const attack = async (cookie: string) => {
      gateway.reached.length = 0
      const response = await createUserAgent().send(at('/orders'), { headers: { cookie } })
      const text = await response.text()
      const isProblem = response.headers.get('content-type') === 'application/problem+json'
      const code = isProblem ? (JSON.parse(text) as { code: string }).code : ''
      return { status: response.status, code, reached: gateway.reached.length }
    }
    const signedIn = async (subject: string) => {
      gateway.provider.user.subject = subject
      const of = createUserAgent()
      await of.visit(at('/orders'))
      return session(of)
    }

    test('two session cookies are refused in each order, and in each spelling', async () => {
      const [victim, attacker] = [await signedIn('alice'), await signedIn('mallory')]
      for (const cookie of [
        `${SESSION_COOKIE}=${attacker}; ${SESSION_COOKIE}=${victim}`,
        `${SESSION_COOKIE}=${victim}; ${SESSION_COOKIE}=${attacker}`,
        `${SESSION_COOKIE}=${victim}; ${SESSION_COOKIE}=${victim}`,
        `${SESSION_COOKIE}=${victim}, ${SESSION_COOKIE}=${attacker}`,
        `${SESSION_COOKIE}=${victim}; ${SESSION_COOKIE} =${attacker}`,
      ])
        expect({ cookie, ...(await attack(cookie)) }).toEqual({
          cookie,
          status: 400,
          code: 'ambiguous_credentials',
          reached: 0,
        })
    })

    /** A sibling host can set these for the whole domain: only `__Host-` forbids `Domain`. */
    const OF_A_SIBLING = [
      'portcullis-session',
      '__Secure-portcullis-session',
      '__host-portcullis-session',
      '__Host-Portcullis-Session',
      '=__Host-portcullis-session',
      'x__Host-portcullis-session',
    ]

    test('a cookie that another host of the domain can set is no session', async () => {
      const attacker = await signedIn('mallory')
      for (const name of OF_A_SIBLING)
        expect({ name, ...(await attack(`${name}=${attacker}`)) }).toEqual({
          name,
          status: 401,
          code: 'sign_in_required',
          reached: 0,
        })
    })

    test('beside the session of the user, such a cookie does not change the user', async () => {
      const [victim, attacker] = [await signedIn('alice'), await signedIn('mallory')]
      for (const name of OF_A_SIBLING) {
        const tossed = `${name}=${attacker}`
        const own = `${SESSION_COOKIE}=${victim}`
        for (const cookie of [`${tossed}; ${own}`, `${own}; ${tossed}`]) {
          const { status } = await attack(cookie)
          expect([cookie, status]).toEqual([cookie, 200])
          expect(gateway.reached.at(-1)?.headers['x-auth-subject']).toBe('alice')
        }
      }
    })

    test.each([6_000, 200_000])('a session cookie of %d characters is refused', async (length) => {
      const { status, reached } = await attack(`${SESSION_COOKIE}=pcb_${'A'.repeat(length)}`)
      // The server refuses long headers before the gateway reads them.
      expect([400, 401, 413, 431]).toContain(status)
      expect(reached).toBe(0)
    })

    test('with a tossed cookie of a login, the callback of another browser is refused', async () => {
      const started = await browser.visit(at('/orders'), /\/oauth\/callback/)
      const secret = [...browser.jarOf(gateway.url)].find(([name]) =>
        name.startsWith(LOGIN_COOKIE_PREFIX),
      )?.[1]
      const bare = LOGIN_COOKIE_PREFIX.replace('__Host-', '')
      for (const name of [`${bare}AAAAAAAA`, `__Secure-${bare}AAAAAAAA`, LOGIN_COOKIE_PREFIX]) {
        const victim = createUserAgent()
        const response = await victim.send(started.url, {
          headers: { cookie: `${name}=${secret}` },
        })
        expect([name, response.status]).toEqual([name, 400])
        expect(session(victim)).toBeUndefined()
      }
    })
  })

  describe('sessions as JSON', () => {
    const asJson = { accept: 'application/json' }
    async function listOf(of: UserAgent) {
      const response = await of.send(at('/oauth/sessions'), { headers: asJson })
      return {
        response,
        body: (await response.json()) as { sessions: SessionView[]; code?: string },
      }
    }
    const end = async (id: string, headers: Record<string, string>, of = browser) => {
      const response = await of.send(at(`/oauth/sessions/${id}`), { method: 'DELETE', headers })
      return response.status === 204
        ? 204
        : `${response.status} ${((await response.json()) as { code: string }).code}`
    }

    test('a user lists them, and ends one of them with the next request', async () => {
      const other = createUserAgent()
      await other.visit(at('/orders'), undefined, { headers: { 'user-agent': 'Other' } })
      await browser.visit(at('/orders'))
      const { response, body } = await listOf(browser)
      expect(response.headers.get('content-type')).toContain('application/json')
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(body.sessions.filter(({ current }) => current)).toHaveLength(1)
      const { id = '' } = (await listOf(other)).body.sessions.find(({ current }) => current) ?? {}
      expect(body.sessions.find((one) => one.id === id)).toEqual({
        id,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        activeAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        city: null,
        country: null,
        browser: 'Unknown browser',
        userAgent: null,
        current: false,
      })
      expect(JSON.stringify(body)).not.toContain(session())
      expect(await end(id, SAME_ORIGIN)).toBe(204)
      gateway.reached.length = 0
      expect(await outcome('/orders', {}, other)).toBe('sign_in_required')
      expect(gateway.reached).toHaveLength(0)
      expect(await end(id, SAME_ORIGIN)).toBe('404 not_found')
      expect(await outcome('/orders')).toBe(200)
    })

    test('another page, another user and a browser without a session end none', async () => {
      await browser.visit(at('/orders'))
      const { sessions } = (await listOf(browser)).body
      const { id = '' } = sessions.find(({ current }) => current) ?? {}
      for (const headers of [
        {},
        { 'sec-fetch-site': 'cross-site' },
        { origin: 'https://evil.test' },
      ])
        expect(await end(id, headers as Record<string, string>)).toBe('403 cross_origin_request')
      const stranger = createUserAgent()
      expect((await listOf(stranger)).body.code).toBe('sign_in_required')
      expect(await end(id, SAME_ORIGIN, stranger)).toBe('401 sign_in_required')
      gateway.provider.user.subject = 'mallory'
      const mallory = createUserAgent()
      await mallory.visit(at('/orders'))
      expect(await end(id, SAME_ORIGIN, mallory)).toBe('404 not_found')
      expect(await outcome('/orders')).toBe(200)
    })
  })

  test('while the provider is down, users go on and new logins get a page [R39]', async () => {
    await browser.visit(at('/orders'))
    gateway.provider.down(true)
    try {
      // The gateway has seen the provider within the last ten seconds, unless it starts again.
      await gateway.restart()
      expect(await outcome('/orders')).toBe(200)
      const fresh = await createUserAgent().visit(at('/orders'))
      expect([fresh.status, fresh.text]).toEqual([503, expect.stringContaining('not available')])
      expect(fresh.headers.get('retry-after')).toMatch(/^\d+$/)
    } finally {
      gateway.provider.down(false)
    }
    await gateway.restart()
  })

  test('while Redis is down, a session is an outage, not a missing login', async () => {
    await browser.visit(at('/orders'))
    gateway.reached.length = 0
    await gateway.redis.close()
    expect(await outcome('/orders')).toBe('dependency_unavailable')
    const page = await browser.visit(at('/oauth/sign-in'))
    expect(page.status).toBe(503)
    expect(gateway.reached).toHaveLength(0)
  })
})
