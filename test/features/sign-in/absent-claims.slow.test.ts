/** What providers send as null, or do not send, in ID tokens, token responses and logout tokens. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { LOGOUT_EVENT } from './provider.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe.each(RUNTIMES)('sign-in at a provider with absent claims, on %s', (runtime) => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  let strict: SigningProvider
  let browser: UserAgent
  beforeAll(async () => {
    provider = await startSigningProvider()
    strict = await startSigningProvider()
    gateway = await startGatewayFor(
      [
        { provider, name: 'Lax', entry: { logoutTokenExp: 'optional' } },
        { provider: strict, name: 'Strict' },
      ],
      { runtime },
    )
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
    await strict?.close()
  })
  beforeEach(() => {
    browser = createUserAgent()
    provider.reset()
    gateway.reached.length = 0
  })
  const login = (at = provider) => {
    const query = new URLSearchParams({ return_to: '/orders', iss: at.issuer })
    return browser.visit(`${gateway.url}/oauth/sign-in?${query}`)
  }

  test.each([null, ''])('ID tokens may have %j in place of a claim [S81]', async (empty) => {
    const names = ['sid', 'tenant', 'azp', 'auth_time', 'nbf', 'jti', 'acr', 'scope', 'client_id']
    for (const name of [...names, 'cnf', 'amr', 'at_hash', 'events']) {
      if (name === 'cnf' && empty === '') continue
      provider.answer.idToken = { [name]: empty }
      browser = createUserAgent()
      expect([name, (await login()).status]).toEqual([name, 200])
    }
    for (const name of ['iss', 'sub', 'aud', 'exp', 'iat', 'nonce']) {
      provider.answer.idToken = { [name]: empty }
      browser = createUserAgent()
      const visit = await login()
      expect([name, visit.status, visit.text]).toEqual([
        name,
        400,
        expect.stringContaining(`id_token_${name}`),
      ])
    }
    // Several audiences need the client in azp: nothing takes its place.
    provider.answer.idToken = {
      aud: [provider.client.id, 'other'],
      azp: empty,
      client_id: provider.client.id,
    }
    browser = createUserAgent()
    expect((await login()).text).toContain('id_token_azp')
  })

  test.each([null, ''])('token responses may have %j in place of a member', async (empty) => {
    for (const name of ['refresh_token', 'scope', 'expires_in']) {
      provider.answer.token = { [name]: empty }
      browser = createUserAgent()
      expect([name, (await login()).status]).toEqual([name, 200])
    }
    provider.answer.token = { scope: ['openid', null] }
    expect((await login()).status).toBe(200)
    provider.answer.token = { id_token: empty }
    expect((await login()).text).toContain('id_token_missing')
    provider.answer.token = { access_token: empty }
    expect((await login()).status).toBe(200)
  })

  test('empty parts of a scope are ignored in access tokens', async () => {
    for (const scope of ['orders:read  x', 'orders:read ', ' orders:read', null]) {
      const now = nowSeconds()
      const claims = { iss: provider.issuer, aud: gateway.url, sub: 'a', iat: now, exp: now + 60 }
      const token = await provider.sign(
        { ...claims, roles: ['', 'reader', null], scope, client_id: null },
        { typ: 'at+jwt' },
      )
      const headers = { authorization: `Bearer ${token}` }
      expect([scope, (await browser.send(`${gateway.url}/orders`, { headers })).status]).toEqual([
        scope,
        200,
      ])
    }
  })

  const logOut = async (at: SigningProvider, claims: Record<string, unknown>) => {
    const token = await at.sign(
      {
        iss: at.issuer,
        aud: at.client.id,
        sub: 'alice',
        iat: nowSeconds(),
        jti: randomUUID(),
        events: { [LOGOUT_EVENT]: {} },
        ...claims,
      },
      { typ: 'logout+jwt' },
    )
    const send = async () =>
      (
        await createUserAgent().send(`${gateway.url}/oauth/backchannel-logout`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({ logout_token: token }).toString(),
        })
      ).status
    return { first: await send(), again: await send() }
  }
  const isSignedIn = async () => (await browser.send(`${gateway.url}/orders`)).status === 200

  test.each([undefined, null])(
    'a logout token with exp %j ends the session where the entry says so, once',
    async (exp) => {
      await login()
      expect(await isSignedIn()).toBe(true)
      expect(await logOut(provider, { exp })).toEqual({ first: 200, again: 400 })
      expect(await isSignedIn()).toBe(false)
    },
  )

  test('its age is bounded by iat', async () => {
    await login()
    for (const iat of [nowSeconds() - 3_700, nowSeconds() + 60, null, undefined])
      expect(await logOut(provider, { iat })).toEqual({ first: 400, again: 400 })
    // `exp` counts where it is sent.
    expect(
      await logOut(provider, { iat: nowSeconds() - 60, exp: nowSeconds() - 30 }),
    ).toMatchObject({ first: 400 })
    expect(await isSignedIn()).toBe(true)
    expect(await logOut(provider, { iat: nowSeconds() - 3_500 })).toMatchObject({ first: 200 })
    expect(await isSignedIn()).toBe(false)
  })

  test('every other provider must send exp', async () => {
    await login(strict)
    expect(await logOut(strict, {})).toEqual({ first: 400, again: 400 })
    expect(await isSignedIn()).toBe(true)
    expect(await logOut(strict, { exp: nowSeconds() + 60 })).toMatchObject({ first: 200 })
    expect(await isSignedIn()).toBe(false)
  })
})
