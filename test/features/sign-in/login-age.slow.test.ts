/** The age of a login: only `auth_time` of the provider counts, and nothing takes its place. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

const nowSeconds = () => Math.floor(Date.now() / 1000)

/** Values of `auth_time` that say nothing about the login, and the check that names each. */
const UNUSABLE: readonly [string, () => unknown, string][] = [
  ['absent', () => undefined, 'does not say when'],
  ['null', () => null, 'does not say when'],
  ['text', () => String(nowSeconds()), 'cannot be used'],
  ['an RFC 3339 text', () => new Date().toISOString(), 'cannot be used'],
  ['in milliseconds', () => Date.now(), 'cannot be used'],
  ['in the future', () => nowSeconds() + 3_600, 'cannot be used'],
  ['zero', () => 0, 'cannot be used'],
  ['negative', () => -nowSeconds(), 'cannot be used'],
  ['true', () => true, 'cannot be used'],
  ['a list', () => [nowSeconds()], 'cannot be used'],
  ['old', () => nowSeconds() - 3_600, 'too long ago'],
]

describe.each(RUNTIMES)('the age of a login on %s [S81]', (runtime) => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  let browser: UserAgent
  beforeAll(async () => {
    provider = await startSigningProvider()
    gateway = await startGatewayFor([{ provider, name: 'Example' }], { runtime })
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
  })
  beforeEach(() => {
    browser = createUserAgent()
    provider.reset()
    provider.requests.length = 0
    gateway.reached.length = 0
  })
  const at = (path: string) => gateway.url + path
  const reachedRecent = () => gateway.reached.filter(({ url }) => url === '/recent').length

  test.each(UNUSABLE)(
    'auth_time that is %s opens no route with an age, and is no loop',
    async (_name, value, cause) => {
      provider.answer.idToken = { auth_time: value() }
      // Without a demand, the login is good.
      expect((await browser.visit(at('/orders'))).status).toBe(200)
      const visit = await browser.visit(at('/recent'))
      expect([visit.status, visit.text]).toEqual([403, expect.stringContaining(cause)])
      expect(visit.path).toEqual(['/recent', '/oauth/sign-in', '/auth', '/oauth/callback'])
      expect(reachedRecent()).toBe(0)
      // The session of before is valid still, also for requests of scripts, and meets no age.
      expect((await browser.send(at('/orders'))).status).toBe(200)
      const fetched = await browser.send(at('/recent'), { headers: { accept: 'application/json' } })
      expect([fetched.status, fetched.headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringContaining('max_age=60'),
      ])
      expect(reachedRecent()).toBe(0)
    },
  )

  test('a session that renews itself in silence does not become a recent login', async () => {
    provider.answer.idToken = { auth_time: nowSeconds() - 3_600 }
    for (let n = 0; n < 3; n++) {
      await browser.visit(at('/oauth/sign-in?return_to=/orders'))
      expect((await browser.send(at('/recent'))).status).toBe(401)
    }
    expect(reachedRecent()).toBe(0)
  })

  test('max_age is sent to the provider where a route needs it, and only there', async () => {
    await browser.visit(at('/orders'))
    expect(provider.requests.at(-1)?.get('max_age')).toBeNull()
    provider.answer.idToken = { auth_time: nowSeconds() }
    await browser.visit(at('/recent'))
    expect(reachedRecent()).toBe(1)
    const fresh = createUserAgent()
    await fresh.visit(at('/recent'))
    expect(provider.requests.at(-1)?.get('max_age')).toBe('60')
    expect(reachedRecent()).toBe(2)
  })
})
