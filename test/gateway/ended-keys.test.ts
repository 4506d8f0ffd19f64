/** The keys of the gateway itself, which expire while it runs: an outage that says so, and no defect. */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { authorizationServer } from '../../src/features/authorization-server/index.ts'
import { introspection } from '../../src/features/introspection/index.ts'
import { signIn } from '../../src/features/sign-in/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import {
  type IntrospectionProvider,
  json,
  startIntrospectionProvider,
} from '../features/introspection/provider.ts'
import { type SigningProvider, startSigningProvider } from '../features/sign-in/signing-provider.ts'
import { newAddress } from '../harness/address.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from '../harness/gateway.ts'
import { createKey, ISSUER, mint } from '../harness/issuer.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {
    standard: '1000/min',
    anonymous: { limit: 1000, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
  },
  features: [authorizationServer(), signIn(), introspection()],
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
    { method: 'GET', path: '/page', permission: 'orders:read', session: 'browser', limits: [] },
    { method: 'GET', path: '/public', anonymous: true, limits: ['anonymous'] },
  ],
})

const DAY_MS = 86_400_000
const NOW_MS = Date.now()
const inDays = (days: number) => Math.floor((NOW_MS + days * DAY_MS) / 1000)
const CLIENT = { id: '0190f8a0-7c3a-7000-8000-000000000001', secret: 'x'.repeat(43) }

let introspecting: IntrospectionProvider
let provider: SigningProvider
let gateway: TestGateway
let keys: { readonly own: object; readonly client: object; readonly other: object }

beforeAll(async () => {
  const jwk = async (kid: string) => (await createKey(kid)).privateJwk
  keys = { own: await jwk('own'), client: await jwk('client'), other: await jwk('other') }
  introspecting = await startIntrospectionProvider()
  introspecting.answer = json(introspecting.claims)
  provider = await startSigningProvider()
  gateway = await startGateway({
    policy,
    issuers: ({ publicJwk }) => [
      { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [publicJwk] } },
      { issuer: introspecting.issuer, audience: 'orders', keySet: 'none', introspection: {} },
      { issuer: provider.issuer, audience: PUBLIC_URL },
    ],
    variables: {
      CLIENTS: JSON.stringify([
        {
          id: CLIENT.id,
          grants: ['client_credentials'],
          secretSha256: createHash('sha256').update(CLIENT.secret).digest('base64url'),
          tokenFormat: 'jwt',
        },
      ]),
    },
  })
})
afterAll(async () => {
  await gateway?.close()
  await provider?.close()
  await introspecting?.close()
})

let errors: string[]
let warnings: string[]
beforeEach(() => {
  errors = []
  warnings = []
  vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS })
  vi.spyOn(console, 'error').mockImplementation((line) => void errors.push(String(line)))
  vi.spyOn(console, 'warn').mockImplementation((line) => void warnings.push(String(line)))
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  gateway.requests.length = 0
})

/** Starts a gateway at NOW_MS whose keys have these members, too. */
function startWith({ own = {}, client = {} }: { own?: object; client?: object }) {
  const entry = { id: 'gateway', key: { ...keys.client, ...client } }
  return gateway.client(policy, {
    SIGNING_KEYS: JSON.stringify({ keys: [{ ...keys.own, ...own }] }),
    ISSUER_CLIENTS: JSON.stringify([
      { ...entry, issuer: introspecting.issuer },
      { ...entry, issuer: provider.issuer, signIn: { name: 'Example' } },
    ]),
  })
}
type Isolate = ReturnType<typeof startWith>

async function get(isolate: Isolate, path: string, token?: string, init = {}) {
  const response = await isolate.send(path, newAddress(), token, init)
  return { status: response.status, text: await response.text(), headers: response.headers }
}
const userToken = (days: number) =>
  mint(gateway.key, { claims: { aud: PUBLIC_URL, iat: inDays(days), exp: inDays(days) + 300 } })
const lastReason = ({ events }: Isolate) => events.at(-1)?.reason
const passDays = (days: number) => vi.setSystemTime(NOW_MS + days * DAY_MS)
const requestToken = (isolate: Isolate) =>
  get(isolate, '/oauth/token', undefined, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}`,
    },
    body: 'grant_type=client_credentials',
  })

test('signing keys that have expired are an outage, which the log, readiness and the audit event name', async () => {
  const isolate = startWith({ own: { exp: inDays(1) } })
  const other = startWith({ own: { exp: inDays(1) } })
  expect((await get(isolate, '/orders', await userToken(0))).status).toBe(200)
  expect((await requestToken(isolate)).status).toBe(200)
  gateway.requests.length = 0
  passDays(2)
  const refused = await get(isolate, '/orders', await userToken(2))
  expect([refused.status, JSON.parse(refused.text).code]).toEqual([503, 'dependency_unavailable'])
  expect(lastReason(isolate)).toBe('signing_keys:no_key')
  expect(gateway.requests).toEqual([])
  const token = await requestToken(isolate)
  expect([token.status, JSON.parse(token.text).error]).toEqual([503, 'temporarily_unavailable'])
  expect(lastReason(isolate)).toBe('signing_keys:no_key')
  const ready = await get(isolate, '/-/readyz')
  expect([ready.status, JSON.parse(ready.text).checks.signingKeys]).toEqual([503, 'failed'])
  // Once, although three requests found it.
  expect(errors).toEqual(['{"incident":"no_signing_key","variable":"SIGNING_KEYS"}'])
  for (const { text } of [refused, token, ready]) expect(text).not.toMatch(/SIGNING_KEYS|signs/)
  expect((await get(isolate, '/public')).status).toBe(200)
  // Another gateway of this process has a log of its own.
  expect((await get(other, '/-/readyz')).status).toBe(503)
  expect(errors).toHaveLength(2)
})

test('a signing key whose halves do not match is an outage, and not ready from the start', async () => {
  const isolate = startWith({ own: { x: (keys.other as { x: string }).x, kid: 'mixed' } })
  const ready = await get(isolate, '/-/readyz')
  expect([ready.status, JSON.parse(ready.text).checks.signingKeys]).toEqual([503, 'failed'])
  const refused = await get(isolate, '/orders', await userToken(0))
  expect([refused.status, lastReason(isolate)]).toEqual([503, 'signing_keys:no_key'])
  expect([errors.length, gateway.requests]).toEqual([1, []])
  expect(errors[0]).toContain('"kid":"mixed"')
})

test('an expired key of a client is an outage of its issuer only, found before the user leaves', async () => {
  const isolate = startWith({ client: { exp: inDays(1) } })
  expect((await get(isolate, '/orders', 'opaque-1')).status).toBe(200)
  gateway.requests.length = 0
  passDays(2)
  const { calls } = introspecting
  const before = calls.length
  expect((await get(isolate, '/orders', 'opaque-2')).status).toBe(503)
  expect(lastReason(isolate)).toBe('introspection:no_key')
  expect([calls.length, gateway.requests]).toEqual([before, []])
  const login = await get(isolate, '/oauth/sign-in?return=/page')
  expect([login.status, login.headers.get('location')]).toEqual([503, null])
  expect(lastReason(isolate)).toBe('identity_provider:no_key')
  expect(provider.requests).toEqual([])
  const ready = await get(isolate, '/-/readyz')
  const { checks } = JSON.parse(ready.text)
  expect([ready.status, checks.clientKeys, checks.signingKeys]).toEqual([200, 'failed', 'ok'])
  expect((await get(isolate, '/orders', await userToken(2))).status).toBe(200)
  expect(errors.map((line) => JSON.parse(line))).toEqual(
    [introspecting, provider].map(({ issuer }) => ({
      incident: 'no_signing_key',
      variable: 'ISSUER_CLIENTS',
      issuer,
    })),
  )
})

test('keys that expire within seven days are named at the start, and again a day later', async () => {
  const isolate = startWith({ own: { exp: inDays(8) }, client: { exp: inDays(6.5) } })
  const named = () =>
    warnings.flatMap((line) => line.match(/"(?:SIGNING_KEYS|ISSUER_CLIENTS)"/) ?? [])
  expect(named()).toEqual(['"ISSUER_CLIENTS"', '"ISSUER_CLIENTS"'])
  expect((await get(isolate, '/orders', await userToken(0))).status).toBe(200)
  expect(named()).toHaveLength(2)
  passDays(1.5)
  expect((await get(isolate, '/-/readyz')).status).toBe(200)
  expect(named().toSorted()).toEqual([...Array(4).fill('"ISSUER_CLIENTS"'), ...['"SIGNING_KEYS"']])
})

test('a key set of the configuration without a usable key is an outage', async () => {
  const isolate = gateway.client(policy, {
    SIGNING_KEYS: JSON.stringify({ keys: [keys.own] }),
    ISSUERS: JSON.stringify([
      {
        issuer: ISSUER,
        audience: PUBLIC_URL,
        // A point that is not on its curve.
        jwks: { keys: [{ ...gateway.key.publicJwk, y: (keys.other as { y: string }).y }] },
      },
      { issuer: provider.issuer, audience: PUBLIC_URL },
    ]),
    ISSUER_CLIENTS: JSON.stringify([
      { id: 'gateway', key: keys.client, issuer: provider.issuer, signIn: { name: 'Example' } },
    ]),
  })
  const refused = await get(isolate, '/orders', await userToken(0))
  expect([refused.status, lastReason(isolate)]).toEqual([503, 'key_set:malformed'])
  expect(gateway.requests).toEqual([])
})
