/** An issuer of opaque tokens that has no key set: what a caller without credentials can do with its name. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { introspection } from '../../../src/features/introspection/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { newAddress } from '../../harness/address.ts'
import { PUBLIC_URL, sendTo, startGateway, type TestGateway } from '../../harness/gateway.ts'
import { createKey, mint } from '../../harness/issuer.ts'
import {
  clientsFor,
  type IntrospectionProvider,
  json,
  startIntrospectionProvider,
} from './provider.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: { standard: '1000/min' },
  features: [introspection()],
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
})

let provider: IntrospectionProvider
let gateway: TestGateway
beforeAll(async () => {
  provider = await startIntrospectionProvider()
  const { issuer } = provider
  gateway = await startGateway({
    policy,
    issuers: () => [{ issuer, audience: 'orders', keySet: 'none', introspection: {} }],
    variables: clientsFor(issuer),
  })
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})
afterAll(async () => {
  await gateway?.close()
  await provider?.close()
  vi.restoreAllMocks()
})

const send = (isolate: ReturnType<TestGateway['isolate']>, path: string, token?: string) =>
  sendTo(
    isolate,
    new Request(PUBLIC_URL + path, {
      headers: {
        'CF-Connecting-IP': newAddress(),
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
    }),
  )

test('a JWT that names it is 401 without a call to it, and the gateway stays ready', async () => {
  const isolate = gateway.isolate()
  const forged = await mint(await createKey('forged'), { claims: { iss: provider.issuer } })
  const response = await send(isolate, '/orders', forged)
  expect(response.status).toBe(401)
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
  const ready = await send(isolate, '/-/readyz')
  const text = await ready.text()
  expect([ready.status, text]).toEqual([200, expect.stringContaining('"keySets":"ok"')])
  expect(text).not.toContain('key_set')
  expect([provider.calls, provider.metadataCalls(), gateway.requests]).toEqual([[], 0, []])
})

test('its opaque tokens are verified by a call', async () => {
  const isolate = gateway.isolate()
  provider.answer = json({ active: false })
  expect((await send(isolate, '/orders', 'not-active')).status).toBe(401)
  expect(gateway.requests).toEqual([])
  provider.answer = json(provider.claims)
  expect((await send(isolate, '/orders', 'opaque-token')).status).toBe(200)
  expect([provider.calls.length, gateway.requests.length]).toEqual([2, 1])
})
