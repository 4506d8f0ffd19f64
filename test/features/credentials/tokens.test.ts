/** Tokens of the gateway itself: their renewal, and an authorization server that fails or changes the secret. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startWorld, type World } from './world.ts'

/** Of the tokens of the provider. */
const LIFE_MS = 600_000
/** A younger token is not fetched again because the origin refuses it. */
const FRESH_MS = 10_000
const BREAKER_FAILURES = 5

let world: World
const log: string[] = []
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  log.length = 0
  for (const method of ['log', 'warn', 'error'] as const)
    vi.spyOn(console, method).mockImplementation((...values) => void log.push(values.join(' ')))
  world = await startWorld()
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await world.close()
})

const pass = (ms: number) => vi.setSystemTime(Date.now() + ms)
const sentToken = () => (world.requests.at(-1)?.headers.authorization ?? '').replace('Bearer ', '')

/** Returns the status and the reason of the audit event. */
async function outcomeOf(path = '/token/orders', options?: RequestInit): Promise<string> {
  const response = await world.send(path, options)
  await response.text()
  return `${response.status} ${world.gateway.events.at(-1)?.reason}`
}

test('a token is renewed before it expires, while requests use the one before', async () => {
  expect(await outcomeOf()).toBe('200 ok')
  const first = sentToken()
  pass(LIFE_MS * 0.7)
  expect(await outcomeOf()).toBe('200 ok')
  expect(world.fetches()).toBe(1)
  pass(LIFE_MS * 0.15)
  expect(await outcomeOf()).toBe('200 ok')
  expect(sentToken()).toBe(first)
  await expect.poll(async () => (await outcomeOf()) && sentToken() !== first).toBe(true)
  expect(world.fetches()).toBe(2)
})

test('a route and an origin with the same credentials share a token', async () => {
  expect(await outcomeOf('/token/orders')).toBe('200 ok')
  expect(await outcomeOf('/own')).toBe('200 ok')
  expect(world.fetches()).toBe(1)
})

test('while the authorization server is down, a token is used until it expires; then requests are 503, and the origin is not called', async () => {
  expect(await outcomeOf()).toBe('200 ok')
  await world.proxy.set({ kind: 'refuse' })
  pass(LIFE_MS * 0.9)
  expect(await outcomeOf()).toBe('200 ok')
  pass(LIFE_MS * 0.1)
  const reached = world.requests.length
  for (let failures = 0; failures < BREAKER_FAILURES; failures++)
    expect(await outcomeOf()).toBe('503 identity_provider:unreachable')
  // The circuit breaker is open: no further connection is tried.
  const refused = await world.send('/token/orders')
  expect(refused.status).toBe(503)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await refused.json()).toMatchObject({ code: 'dependency_unavailable' })
  expect(world.requests).toHaveLength(reached)
  await world.proxy.set({ kind: 'none' })
  pass(5_000)
  expect(await outcomeOf()).toBe('200 ok')
})

test('an authorization server that does not answer costs no more than the deadline of the origin', async () => {
  await world.proxy.set({ kind: 'hang' })
  expect(await outcomeOf()).toBe('503 identity_provider:timeout')
  expect(world.requests).toEqual([])
})

test('with a secret that was replaced, requests are 502 once the token has expired; the new secret is accepted', async () => {
  expect(await outcomeOf()).toBe('200 ok')
  await world.provider.rotateSecret()
  expect(await outcomeOf()).not.toContain('401')
  pass(LIFE_MS)
  const reached = world.requests.length
  const response = await world.send('/token/orders')
  expect(response.status).toBe(502)
  expect(response.headers.get('www-authenticate')).toBeNull()
  expect(await response.json()).toMatchObject({ code: 'origin_unreachable' })
  expect(world.gateway.events.at(-1)?.reason).toBe('origin:unauthorized')
  expect(world.requests).toHaveLength(reached)
  const send = world.isolate({ ORIGIN_SECRET_CLIENT: world.provider.client.secret })
  expect((await send('/token/orders')).status).toBe(200)
})

test('a GET whose token the origin refuses is sent once more with a new token', async () => {
  expect(await outcomeOf()).toBe('200 ok')
  world.refused.add(sentToken())
  pass(FRESH_MS)
  world.requests.length = 0
  expect(await outcomeOf()).toBe('200 ok')
  expect(world.requests).toHaveLength(2)
  expect(world.fetches()).toBe(2)
})

test('a POST is never sent twice: it is 502, and the next request has a new token', async () => {
  expect(await outcomeOf()).toBe('200 ok')
  world.refused.add(sentToken())
  pass(FRESH_MS)
  world.requests.length = 0
  expect(await outcomeOf('/token/orders', { method: 'POST', body: 'order' })).toBe(
    '502 origin:unauthorized',
  )
  expect(world.requests).toHaveLength(1)
  expect(await outcomeOf('/token/orders', { method: 'POST', body: 'order' })).toBe('200 ok')
  expect(world.fetches()).toBe(2)
})

test('an origin that refuses every token causes one fetch in ten seconds, however many requests come', async () => {
  world.state.refusesAll = true
  for (let n = 0; n < 5; n++) expect(await outcomeOf()).toBe('502 origin:unauthorized')
  expect(world.fetches()).toBe(1)
  pass(FRESH_MS)
  for (let n = 0; n < 5; n++) expect(await outcomeOf()).toBe('502 origin:unauthorized')
  expect(world.fetches()).toBe(2)
})

test('neither the log nor an audit event has a secret or a token', async () => {
  expect(await outcomeOf()).toBe('200 ok')
  const token = sentToken()
  world.state.refusesAll = true
  expect(await outcomeOf()).toBe('502 origin:unauthorized')
  await world.proxy.set({ kind: 'refuse' })
  pass(LIFE_MS)
  for (let n = 0; n < BREAKER_FAILURES; n++) await outcomeOf()
  const written = log.join('\n') + JSON.stringify(world.gateway.events)
  expect(written).toContain('origin_credentials_refused')
  expect(written).toContain('dependency_down')
  for (const secret of [token, world.provider.client.secret]) expect(written).not.toContain(secret)
})
