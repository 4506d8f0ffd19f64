/** Tokens of users in many groups: in requests, and in answers of the provider. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { definePolicy } from '../../../src/policy/policy.ts'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { policyFor } from './policy.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent } from './user-agent.ts'

const DEFAULT_BYTES = 16_384
const ID_TOKEN_BYTES = 65_536
const groups = (count: number) =>
  Array.from({ length: count }, (_, n) => `00000000-aaaa-4bbb-8ccc-${String(n).padStart(12, '0')}`)

describe.each(RUNTIMES)('the size of a token on %s [S21]', (runtime) => {
  let provider: SigningProvider
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let raised: Awaited<ReturnType<typeof startGatewayFor>>
  beforeAll(async () => {
    provider = await startSigningProvider()
    const all = [{ provider, name: 'Example' }]
    gateway = await startGatewayFor(all, { runtime })
    raised = await startGatewayFor(all, { runtime, policy: { maxTokenBytes: 24_576 } })
  })
  afterAll(async () => {
    await gateway?.close()
    await raised?.close()
    await provider?.close()
  })
  beforeEach(() => {
    provider.reset()
    gateway.reached.length = 0
  })

  const signed = (audience: string, claims: object, header = { typ: 'at+jwt' }) => {
    const now = Math.floor(Date.now() / 1000)
    const base = { iss: provider.issuer, aud: audience, sub: 'alice', iat: now, exp: now + 300 }
    return provider.sign({ ...base, roles: ['reader'], ...claims }, header)
  }
  /** Signs a token of exactly this length. Four characters of a token are three of its claims. */
  async function sized(audience: string, length: number): Promise<string> {
    for (let padding = Math.floor(length * 0.7); ; padding++) {
      const token = await signed(audience, { padding: 'x'.repeat(padding) })
      if (token.length >= length) return token
      padding += Math.max(0, Math.floor((length - token.length) * 0.74) - 2)
    }
  }
  const call = async (at: typeof gateway, token: string, path = '/orders') =>
    (await fetch(at.url + path, { headers: { authorization: `Bearer ${token}` } })).status

  test.each([100, 150, 200])('a token with %i groups is accepted', async (count) => {
    const token = await signed(gateway.url, { groups: groups(count) })
    expect(await call(gateway, token)).toBe(200)
    // From the cache as well.
    expect(await call(gateway, token)).toBe(200)
    expect(gateway.reached).toHaveLength(2)
  })

  test('the longest token is accepted, and a longer one is 401 on every kind of route', async () => {
    const longest = await sized(gateway.url, DEFAULT_BYTES - 2)
    expect(longest.length).toBeLessThanOrEqual(DEFAULT_BYTES)
    expect(await call(gateway, longest)).toBe(200)
    gateway.reached.length = 0
    const longer = await sized(gateway.url, DEFAULT_BYTES + 1)
    for (const path of ['/orders', '/tokens-only', '/open'])
      expect([path, await call(gateway, longer, path)]).toEqual([path, 401])
    expect(gateway.reached).toHaveLength(0)
  })

  test('maxTokenBytes raises the bound, up to its own', async () => {
    expect(await call(raised, await sized(raised.url, 24_570))).toBe(200)
    expect(await call(raised, await sized(raised.url, 24_577))).toBe(401)
  })

  test.each([12_000, 40_000])(
    'a user signs in with an ID token of %i characters',
    async (length) => {
      provider.answer.idToken = { padding: 'x'.repeat(length * 0.74) }
      const browser = createUserAgent()
      expect((await browser.visit(`${gateway.url}/orders`)).status).toBe(200)
      // The provider would refuse an address of this length.
      const headers = { 'sec-fetch-site': 'same-origin' }
      const out = await browser.send(`${gateway.url}/oauth/sign-out`, { method: 'POST', headers })
      expect(out.status).toBe(303)
      expect(out.headers.get('location')?.length).toBeLessThan(2_000)
    },
  )

  test('an ID token above 64 KiB is refused by a page that names the cause', async () => {
    provider.answer.idToken = { padding: 'x'.repeat(ID_TOKEN_BYTES) }
    const visit = await createUserAgent().visit(`${gateway.url}/orders`)
    expect([visit.status, visit.text]).toEqual([400, expect.stringContaining('id_token_length')])
    expect(visit.text).not.toContain('cookies')
    expect(gateway.reached).toHaveLength(0)
  })
})

test('a bound that the fields of a request would exceed is a mistake', () => {
  expect(() => policyFor({}, { maxTokenBytes: 24_577 })).toThrow(/maxTokenBytes.*maxHeaderBytes/)
  expect(() => policyFor({}, { maxTokenBytes: 40_001, maxHeaderBytes: 48_192 })).toThrow(
    /maxTokenBytes.*40000/,
  )
  expect(policyFor({}, { maxTokenBytes: 40_000, maxHeaderBytes: 48_192 }).maxTokenBytes).toBe(
    40_000,
  )
  expect(() => policyFor({}, { maxTokenBytes: 1_000 })).toThrow(/maxTokenBytes/)
  expect(() => policyFor({}, { maxTokenBytes: 8_192.5 })).toThrow(/maxTokenBytes/)
  expect(
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/', anonymous: true }],
    }),
  ).toHaveProperty('maxTokenBytes', DEFAULT_BYTES)
})
