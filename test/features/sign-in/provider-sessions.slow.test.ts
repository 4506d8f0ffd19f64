/** Sessions in step with the provider: back-channel logout, and refreshed tokens. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { freePort } from '../../harness/process.ts'
import { type SignInGateway, startGateway, startOn } from './gateway.ts'
import { LOGOUT_EVENT } from './provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

let gateway: SignInGateway
/** A second gateway with the same Redis, on the other runtime. */
let second: { readonly url: string; stop(): Promise<unknown> }
let browser: UserAgent
beforeAll(async () => {
  gateway = await startGateway({ accessTokenSeconds: 1 })
  const port = await freePort()
  const running = await startOn('workerd', gateway.vars, port)
  second = { url: `http://127.0.0.1:${port}`, stop: () => running.stop() }
})
afterAll(async () => {
  await second?.stop()
  await gateway?.close()
})
beforeEach(async () => {
  browser = createUserAgent()
  Object.assign(gateway.provider.user, { subject: 'alice', roles: ['reader'] })
  await gateway.redis.direct.flushall()
})

const session = (of = browser) => of.jarOf(gateway.url).get(SESSION_COOKIE)
/** The status of a request with the session, at either gateway. */
async function status(at = gateway.url, of = browser, path = '/orders') {
  const headers = { cookie: `${SESSION_COOKIE}=${session(of)}` }
  return (await of.send(at + path, { headers })).status
}
const logout = (token: string, init: RequestInit = {}, at = gateway.url) =>
  createUserAgent().send(`${at}/oauth/backchannel-logout`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `logout_token=${token}`,
    ...init,
  })
/** The provider's id of the session. */
async function sid(): Promise<string> {
  const [key = ''] = await gateway.redis.direct.keys('pc:session:*')
  const { details = '{}' } = await gateway.redis.direct.hgetall(key)
  return (JSON.parse(details) as { providerSession: string }).providerSession
}

/** Redis over REST, whose reply to one call is lost after the call. */
async function startLossyFront(url: string) {
  let calls = 0
  let lost: number | undefined
  const server = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const answer = await fetch(url + request.url, {
      method: 'POST',
      headers: { authorization: request.headers.authorization ?? '' },
      body,
    })
    const text = await answer.text()
    const isBehind = /pc:(?:audit|metrics)/.test(body.toString())
    if (!isBehind && calls++ === lost) return void response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
  })
  return {
    url: server.url,
    close: () => server.close(),
    /** Counts calls from now on, without those behind responses. */
    loseReply(at: number | undefined) {
      calls = 0
      lost = at
    },
    isWhole: () => lost === undefined || calls <= lost,
  }
}

describe('back-channel logout [S76]', () => {
  test('ends the session at every gateway with the next request', async () => {
    await browser.visit(`${gateway.url}/orders`)
    expect([await status(), await status(second.url)]).toEqual([200, 200])
    gateway.reached.length = 0
    const response = await logout(await gateway.provider.logoutToken({ sid: await sid() }))
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect([await status(second.url), await status()]).toEqual([401, 401])
    expect(gateway.reached).toHaveLength(0)
  })

  test('by the subject, ends all sessions of this user, and no other', async () => {
    const other = createUserAgent()
    const bob = createUserAgent()
    await browser.visit(`${gateway.url}/orders`)
    await other.visit(`${gateway.url}/orders`)
    gateway.provider.user.subject = 'bob'
    await bob.visit(`${gateway.url}/orders`)
    expect((await logout(await gateway.provider.logoutToken({ sub: 'alice' }))).status).toBe(200)
    expect([await status(), await status(gateway.url, other)]).toEqual([401, 401])
    expect(await status(gateway.url, bob)).toBe(200)
    expect(await gateway.redis.direct.keys('pc:session:*')).toHaveLength(1)
  })

  test('a login after the logout is a new session', async () => {
    await browser.visit(`${gateway.url}/orders`)
    await logout(await gateway.provider.logoutToken({ sub: 'alice' }))
    await browser.visit(`${gateway.url}/orders`)
    expect(await status()).toBe(200)
  })

  test('a logout token is valid once', async () => {
    const token = await gateway.provider.logoutToken({ sub: 'alice' })
    expect((await logout(token)).status).toBe(200)
    await browser.visit(`${gateway.url}/orders`)
    expect((await logout(token)).status).toBe(400)
    expect(await status()).toBe(200)
  })

  test('ends the sessions when it is sent again, whatever reply of Redis was lost', async () => {
    const redis = await startLossyFront(gateway.redis.url)
    const port = await freePort()
    const third = await startOn(
      'Node',
      { ...gateway.vars, UPSTASH_REDIS_REST_URL: redis.url },
      port,
    )
    const send = (token: string) => logout(token, {}, `http://127.0.0.1:${port}`)
    for (const names of ['sub', 'sub and sid']) {
      let lost = 0
      for (let isWhole = false; !isWhole; lost++) {
        browser = createUserAgent()
        await browser.visit(`${gateway.url}/orders`)
        expect(await status()).toBe(200)
        const claims = { sub: 'alice', ...(names !== 'sub' && { sid: await sid() }) }
        const token = await gateway.provider.logoutToken(claims)
        redis.loseReply(lost)
        const first = await send(token)
        isWhole = redis.isWhole()
        redis.loseReply(undefined)
        // The gateway repeats calls that may be repeated.
        expect(isWhole ? [200] : [200, 503]).toContain(first.status)
        // Of the last call, only the reply is lost: the token was used, and the sessions have ended.
        if (first.status === 503) expect([200, 400]).toContain((await send(token)).status)
        expect([names, lost, await status()]).toEqual([names, lost, 401])
        expect((await send(token)).status).toBe(400)
      }
      expect(lost).toBeGreaterThan(3)
    }
    await Promise.all([third.stop(), redis.close()])
  })

  test.each<[string, Record<string, unknown>, Record<string, unknown>?]>([
    ['without a subject and a session', { sub: undefined }],
    ['with a nonce, as an ID token', { nonce: 'x' }],
    ['without the event', { events: {} }],
    ['with another event', { events: { 'http://example.com/other': {} } }],
    ['with an event that is no object', { events: { [LOGOUT_EVENT]: 'x' } }],
    ['without an id', { jti: undefined }],
    ['without a time', { iat: undefined }],
    ['without an end', { exp: undefined }],
    ['that has expired', { iat: 1_700_000_000, exp: 1_700_000_100 }],
    ['from the future', { iat: 4_000_000_000, exp: 4_000_000_100 }],
    ['that is valid for a day', { exp: Math.floor(Date.now() / 1000) + 86_400 }],
    ['for another client', { aud: 'other' }],
    ['of another issuer', { iss: 'https://evil.example' }],
    ['of the type of an access token', {}, { typ: 'at+jwt' }],
  ])('a logout token %s is refused', async (_name, claims, header) => {
    await browser.visit(`${gateway.url}/orders`)
    const token = await gateway.provider.logoutToken({ sub: 'alice', ...claims }, header)
    expect((await logout(token)).status).toBe(400)
    expect(await status()).toBe(200)
  })

  test('a logout token with another signature, or none, is refused', async () => {
    await browser.visit(`${gateway.url}/orders`)
    const token = await gateway.provider.logoutToken({ sub: 'alice' })
    const [head, body, signature = ''] = token.split('.')
    const none = btoa('{"alg":"none"}').replaceAll('=', '')
    for (const forged of [
      `${head}.${body}.${signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))}`,
      `${none}.${body}.`,
      'x',
      '',
    ])
      expect((await logout(forged)).status).toBe(400)
    expect((await logout(token, { headers: {} })).status).toBe(400)
    expect(await status()).toBe(200)
  })
})

describe('refreshed tokens', () => {
  const refreshes = () => gateway.provider.calls.filter((call) => call === 'POST /token').length
  /**
   * Signs in, and waits until the access token has expired, without a refresh so far. On a slow machine, the token
   * expires before the first request of the session, which refreshes it; then another login follows.
   */
  async function signInAndExpire() {
    for (let n = 0; n < 10; n++) {
      const count = refreshes()
      await browser.visit(`${gateway.url}/orders`)
      await new Promise((done) => setTimeout(done, 1_100))
      // The code was exchanged.
      if (refreshes() - count === 1) return
      await gateway.redis.direct.flushall()
      browser = createUserAgent()
    }
    throw new Error('each login took longer than its access token is valid')
  }
  const until = (isTrue: () => Promise<boolean> | boolean) => expect.poll(isTrue).toBe(true)
  const stored = async () => {
    const [key = ''] = await gateway.redis.direct.keys('pc:session:*')
    return (await gateway.redis.direct.hgetall(key)).tokens
  }

  test('parallel requests at two gateways cause one refresh, and none waits for it', async () => {
    await signInAndExpire()
    const before = await stored()
    const count = refreshes()
    const release = gateway.provider.holdTokens()
    try {
      const answers = Array.from({ length: 20 }, (_, n) => status(n % 2 ? second.url : gateway.url))
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
      expect(await stored()).toBe(before)
    } finally {
      release()
    }
    await until(async () => (await stored()) !== before)
    expect(refreshes() - count).toBe(1)
    expect(await status()).toBe(200)
  })

  test('tokens are stored encrypted', async () => {
    await browser.visit(`${gateway.url}/orders`)
    expect(await stored()).toMatch(/^[\w-]{16}\.[\w-]+$/)
  })

  test('a session that the provider has ended is refused soon after', async () => {
    await signInAndExpire()
    gateway.provider.refuseRefresh(true)
    try {
      expect(await status()).toBe(200)
      await until(async () => (await status()) === 401)
      expect(await status(second.url)).toBe(401)
    } finally {
      gateway.provider.refuseRefresh(false)
    }
  })

  test('a session outlives an outage of the provider [R39]', async () => {
    await signInAndExpire()
    gateway.provider.down(true)
    try {
      for (let n = 0; n < 5; n++) expect(await status()).toBe(200)
    } finally {
      gateway.provider.down(false)
    }
    expect(await status(second.url)).toBe(200)
  })

  test('refreshed tokens are kept even if the keys of the provider cannot be read', async () => {
    await signInAndExpire()
    const before = await stored()
    const port = await freePort()
    // It has no keys in its cache.
    const fresh = await startOn('Node', gateway.vars, port)
    gateway.provider.hideKeys(true)
    try {
      expect(await status(`http://127.0.0.1:${port}`)).toBe(200)
      await until(async () => (await stored()) !== before)
    } finally {
      gateway.provider.hideKeys(false)
      await fresh.stop()
    }
  })

  test('changed roles apply to a gateway that has not cached the session', async () => {
    await signInAndExpire()
    gateway.provider.user.roles = ['auditor']
    await status()
    const { direct } = gateway.redis
    await until(async () => {
      const [key = ''] = await direct.keys('pc:reference:*')
      return (await direct.get(key))?.includes('auditor') === true
    })
    expect(await status(second.url, browser, '/audit')).toBe(200)
    expect(await status(second.url)).toBe(403)
  })
})
