/** What a gateway waits for before it is ready: the keys of issuers that have some. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { introspection } from '../../src/features/introspection/index.ts'
import { signIn } from '../../src/features/sign-in/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from '../harness/gateway.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { mint } from '../harness/issuer.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: { standard: '1000/min' },
  features: [signIn(), introspection()],
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
})

let gateway: TestGateway
let provider: TestServer
let status = 503
let keys: readonly object[] = []
const asked: string[] = []
beforeAll(async () => {
  provider = await startHttpServer(({ url = '' }, response) => {
    asked.push(url)
    const issuer = provider.url
    const isMetadata = url === '/.well-known/openid-configuration'
    const body = isMetadata ? { issuer, jwks_uri: `${issuer}/keys` } : { keys }
    response.writeHead(isMetadata || url === '/keys' ? status : 404).end(JSON.stringify(body))
  })
  const at = (path: string) => `${provider.url}${path}`
  gateway = await startGateway({
    policy,
    issuers: () => [
      { issuer: provider.url, audience: PUBLIC_URL },
      { issuer: at('/plain-oauth'), audience: PUBLIC_URL },
      { issuer: at('/opaque'), audience: PUBLIC_URL, introspection: { endpoint: at('/i') } },
    ],
    variables: {
      ISSUER_CLIENTS: JSON.stringify(
        [
          { issuer: at('/plain-oauth'), signIn: { name: 'GitHub', preset: 'github' } },
          { issuer: at('/opaque') },
        ].map((entry) => ({ ...entry, id: 'gateway', secret: 'a'.repeat(40) })),
      ),
    },
  })
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})
afterEach(() => vi.useRealTimers())
afterAll(async () => {
  await gateway?.close()
  await provider?.close()
  vi.restoreAllMocks()
})

test('a gateway is unready until the issuers with a key set have sent keys, and asks no other', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
  const isolate = gateway.isolate()
  async function ready() {
    // Longer than readiness is remembered, and than the first pauses after a failure.
    vi.setSystemTime(Date.now() + 40_000)
    const { status, body } = await send('/-/readyz')
    return [status, body.includes('"keySets":"ok"')]
  }
  async function send(path: string, headers: Record<string, string> = {}) {
    const request = new Request(PUBLIC_URL + path, {
      headers: { 'CF-Connecting-IP': '192.0.2.1', ...headers },
    })
    const response = await isolate.fetch(request)
    return { status: response.status, body: await response.text() }
  }
  const useToken = async () => {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const token = await mint(gateway.key, {
      claims: { iss: provider.url, aud: PUBLIC_URL, iat: nowSeconds, exp: nowSeconds + 60 },
    })
    return (await send('/orders', { Authorization: `Bearer ${token}` })).status
  }
  expect([await ready(), await useToken()]).toEqual([[503, false], 503])
  status = 200
  expect([await ready(), await useToken()]).toEqual([[503, false], 503])
  expect(gateway.requests).toEqual([])
  keys = [gateway.key.publicJwk]
  expect([await ready(), await useToken()]).toEqual([[200, true], 200])
  expect(gateway.requests).toHaveLength(1)
  // An outage later does not make it unready: its keys are used for a day.
  status = 503
  vi.setSystemTime(Date.now() + 3_600_000)
  expect(await ready()).toEqual([200, true])
  expect(new Set(asked)).toEqual(
    new Set([
      '/.well-known/openid-configuration',
      '/keys',
      '/.well-known/oauth-authorization-server',
    ]),
  )
})
