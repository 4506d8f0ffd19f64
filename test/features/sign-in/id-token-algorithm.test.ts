/** The one algorithm of a provider's ID tokens and logout tokens. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { idTokenAlgorithmOf, issuers } from '../../../src/validators/issuer.ts'
import { startGatewayFor } from './gateway.ts'
import { LOGOUT_EVENT } from './provider.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent } from './user-agent.ts'

const algorithmOf = (entry: object) => {
  const [config] = issuers.parse([{ issuer: 'https://idp.example', audience: 'api', ...entry }])
  return config && idTokenAlgorithmOf(config)
}

test.each<readonly [string, object, string]>([
  ['nothing', {}, 'RS256'],
  ['several algorithms', { algorithms: ['ES256', 'PS256'] }, 'RS256'],
  ['one algorithm', { algorithms: ['ES256'] }, 'ES256'],
  ['Logto', { preset: 'logto' }, 'ES384'],
  ['another preset with algorithms', { preset: 'descope' }, 'RS256'],
  ['its own choice', { algorithms: ['RS256'], idTokenAlgorithm: 'ES256' }, 'ES256'],
])('an entry with %s has one algorithm', (_name, entry, algorithm) => {
  expect(algorithmOf(entry)).toBe(algorithm)
})

describe('a provider without an algorithm in its entry', () => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  let warned: readonly unknown[]
  beforeAll(async () => {
    provider = await startSigningProvider()
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const entry = { algorithms: undefined }
    try {
      gateway = await startGatewayFor([{ provider, name: 'Example', entry }])
      warned = warn.mock.calls.flat()
    } finally {
      warn.mockRestore()
    }
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
  })
  beforeEach(() => {
    provider.reset()
    gateway.reached.length = 0
  })
  const at = (path: string) => gateway.url + path

  test('is named at the start, with the algorithm that it must use', () => {
    expect(warned).toContainEqual(
      expect.stringMatching(`sign-in: ${provider.issuer} must sign ID tokens .* with RS256`),
    )
  })

  test('signs no user in with an ID token of another algorithm, although its key is published', async () => {
    provider.answer.header = { alg: 'ES256' }
    const visit = await createUserAgent().visit(at('/orders'))
    expect([visit.status, gateway.reached.length]).toEqual([400, 0])
    provider.answer.header = { alg: 'RS256' }
    expect((await createUserAgent().visit(at('/orders'))).status).toBe(200)
  })

  test('ends no session with a logout token of another algorithm', async () => {
    provider.answer.header = { alg: 'RS256' }
    provider.answer.idToken = { sid: 's-1' }
    const browser = createUserAgent()
    expect((await browser.visit(at('/orders'))).status).toBe(200)
    const logOut = async (alg: string) => {
      const iat = Math.floor(Date.now() / 1000)
      const claims = {
        iss: provider.issuer,
        aud: provider.client.id,
        iat,
        exp: iat + 120,
        jti: crypto.randomUUID(),
        events: { [LOGOUT_EVENT]: {} },
        sub: 'alice',
        sid: 's-1',
      }
      const token = await provider.sign(claims, { alg, typ: 'logout+jwt' })
      const body = new URLSearchParams({ logout_token: token })
      return (await fetch(at('/oauth/backchannel-logout'), { method: 'POST', body })).status
    }
    expect(await logOut('ES256')).toBe(400)
    expect((await browser.send(at('/orders'))).status).toBe(200)
    expect(await logOut('RS256')).toBe(200)
    expect((await browser.send(at('/orders'), { headers: { accept: '*/*' } })).status).toBe(401)
  })
})
