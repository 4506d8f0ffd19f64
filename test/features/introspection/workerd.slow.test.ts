/** Introspection by a whole gateway in real workerd, where a request may not await another's promise. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { FIRST_PERIOD_MS } from '../../../src/isolate/circuit-breaker.ts'
import { newAddress } from '../../harness/address.ts'
import { connectedStatus } from '../../harness/connected.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import {
  clientsFor,
  hanging,
  type IntrospectionProvider,
  json,
  startIntrospectionProvider,
} from './provider.ts'

const REQUESTS = 100
/** So that most requests arrive before the first response of the provider, whose deadline is 2 s. */
const SLOW_MS = 100
/** Jitter shortens the first period of an open breaker by at most half. */
const SHORTEST_PERIOD_MS = FIRST_PERIOD_MS / 2

let redis: TestRedis
let origin: TestServer
let reached = 0
let provider: IntrospectionProvider
let gateway: Running

beforeAll(async () => {
  redis = await startTestRedis()
  origin = await startHttpServer((_request, response) => {
    reached += 1
    response.end('[]')
  })
})
afterAll(async () => {
  await origin.close()
  await redis.close()
})
beforeEach(async () => {
  reached = 0
  provider = await startIntrospectionProvider()
  const { issuer } = provider
  gateway = await startWorkerd({
    entry: 'test/features/introspection/workers/gateway.ts',
    vars: {
      ...redisVars(redis),
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([{ issuer, audience: 'orders', introspection: {} }]),
      ...clientsFor(issuer),
    },
  })
})
afterEach(async () => {
  await gateway.stop()
  await provider.close()
})

async function statusOf(token: string, signal?: AbortSignal): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${gateway.port}/orders`, {
    headers: { authorization: `Bearer ${token}`, 'cf-connecting-ip': newAddress() },
    ...(signal && { signal }),
  })
  await response.arrayBuffer()
  const wait = response.headers.get('retry-after')
  return wait === null ? `${response.status}` : `${response.status} after ${wait}`
}

/** Waits until the outage of the provider has ended. Only 503 is repeated. */
const served = async (token: string) =>
  expect(await connectedStatus(async () => Number((await statusOf(token)).slice(0, 3)))).toBe(200)

const statusesOf = (tokens: readonly string[]) =>
  Promise.all(tokens.map((token) => statusOf(token)))

test('100 concurrent requests with one opaque token make one call, and warm requests none', async () => {
  provider.answer = (response, call) =>
    setTimeout(() => json(provider.claims)(response, call), SLOW_MS)
  const statuses = await statusesOf(Array(REQUESTS).fill('opaque-token'))
  expect(statuses).toEqual(Array(REQUESTS).fill('200'))
  expect(provider.calls).toHaveLength(1)
  expect(provider.metadataCalls()).toBe(1)
  const before = redis.calls()
  expect(await statusOf('opaque-token')).toBe('200')
  expect(provider.calls).toHaveLength(1)
  expect(redis.calls() - before).toBe(1)
  expect(reached).toBe(REQUESTS + 1)
})

test('100 concurrent requests with one inactive token make one call, and get 401', async () => {
  provider.answer = (response, call) =>
    setTimeout(() => json({ active: false })(response, call), SLOW_MS)
  const statuses = await statusesOf(Array(REQUESTS).fill('ended-token'))
  expect(statuses).toEqual(Array(REQUESTS).fill('401'))
  expect(provider.calls).toHaveLength(1)
  expect(reached).toBe(0)
})

test('a provider that hangs gets five calls, then only probes, and every request gets 503', async () => {
  provider.answer = hanging
  const slow = await statusesOf(Array.from({ length: 5 }, (_, n) => `token-${n}`))
  expect(slow).toEqual(Array(5).fill('503 after 5'))
  expect(provider.calls).toHaveLength(5)
  const sinceMs = performance.now()
  const refused = await statusesOf(Array.from({ length: 40 }, (_, n) => `later-${n}`))
  const mostProbes = 1 + Math.floor((performance.now() - sinceMs) / SHORTEST_PERIOD_MS)
  expect(refused.every((status) => status.startsWith('503 after '))).toBe(true)
  expect(provider.calls.length).toBeLessThanOrEqual(5 + mostProbes)
  expect(reached).toBe(0)
  provider.answer = json(provider.claims)
  await served('token-0')
})

test('tokens that the provider refuses one by one do not open the breaker for others', async () => {
  provider.answer = (response) => response.writeHead(400).end('{"error":"invalid_request"}')
  for (let n = 0; n < 7; n++) expect(await statusOf(`refused-${n}`)).toBe('401')
  provider.answer = json({ ...provider.claims, scope: null, client_id: '', jti: null })
  expect(await statusOf('opaque-token')).toBe('200')
  expect(reached).toBe(1)
})

test('a client that leaves during the call does not block other requests with its token', async () => {
  provider.answer = hanging
  const abort = new AbortController()
  const left = statusOf('opaque-token', abort.signal).catch(() => 'gone')
  await expect.poll(() => provider.calls.length).toBe(1)
  abort.abort()
  expect(await left).toBe('gone')
  provider.answer = json(provider.claims)
  await served('opaque-token')
})
