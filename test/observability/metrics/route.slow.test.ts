import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import {
  PUBLIC_URL,
  policy,
  startGateway,
  type TestGateway,
} from '../../features/operators/gateway.ts'
import { amountOf, familiesOf, hasPromtool, promtool } from './text.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())
afterEach(() => void vi.useRealTimers())

/** A gateway that reports its counters as it does in a Worker. */
function isolate(variables: Record<string, string> = {}) {
  const app = createGateway(
    composeServices({ ...gateway.env, ...variables }, policy, WORKERS),
    policy,
  )
  const background: Promise<unknown>[] = []
  const context = {
    waitUntil: (promise: Promise<unknown>) => void background.push(promise),
    passThroughOnException() {},
    props: {},
  } as unknown as ExecutionContext
  return {
    async get(path: string, token = '', headers: Record<string, string> = {}) {
      const authorization = token && { Authorization: `Bearer ${token}` }
      const request = new Request(PUBLIC_URL + path, { headers: { ...authorization, ...headers } })
      const response = await app.fetch(request, {}, context)
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
    /** Resolves when all work after the responses is done. */
    async settled() {
      for (let seen = -1; seen !== background.length; await Promise.all(background))
        seen = background.length
    },
  }
}

// This test runs first, while no other isolate has counters to report.
test('one isolate serves the counters of all isolates ten seconds later', async () => {
  const [one, other, third] = [isolate(), isolate(), isolate({ METRICS_ACCESS: 'public' })]
  const reader = await gateway.token({ sub: 'rita', roles: ['reader'] })
  const secret = 'a'.repeat(43)
  for (let count = 0; count < 3; count++)
    expect((await one.get('/orders', reader)).status).toBe(200)
  for (const { get } of [one, other])
    expect((await get(`/orders?token=${secret}`, reader)).status).toBe(200)
  for (const status of [200, 200, 429, 429])
    expect((await other.get('/few', reader)).status).toBe(status)
  expect((await other.get(`/nowhere/${secret}`)).status).toBe(404)
  expect((await other.get('/orders', `${reader}x`)).status).toBe(401)
  const unlucky = isolate()
  gateway.redis.setAnswering(false)
  for (let count = 0; count < 6; count++)
    expect((await unlucky.get('/orders', reader)).status).toBe(503)
  gateway.redis.setAnswering(true)
  await Promise.all([one.settled(), other.settled(), unlucky.settled()])

  const { text } = await third.get('/-/metrics')
  const requests = (labels: Record<string, string>) =>
    amountOf(text, 'portcullis_requests_total', labels)
  expect(requests({ route: '/orders', decision: 'allow', reason: 'ok', status: '200' })).toBe(5)
  expect(requests({ route: '/few', decision: 'deny', reason: 'rate_limited' })).toBe(2)
  expect(requests({ route: '/orders', reason: 'token_rejected', status: '401' })).toBe(1)
  expect(requests({ route: 'none', reason: 'not_found', status: '404' })).toBe(1)
  expect(amountOf(text, 'portcullis_rate_limited_total', { limit: 'few' })).toBe(2)
  const cache = (cache: string, result: string) =>
    amountOf(text, 'portcullis_cache_requests_total', { cache, result })
  // The first request of each isolate; a credential that has no token format is not looked up.
  expect(cache('tokens', 'miss')).toBe(3)
  expect(cache('tokens', 'hit')).toBe(12)
  expect(cache('exhausted', 'hit')).toBe(1)
  const admitted = { stage: 'admit' }
  expect(amountOf(text, 'portcullis_stage_duration_seconds_count', admitted)).toBe(15)
  expect(amountOf(text, 'portcullis_redis_calls_total', { outcome: 'answered' })).toBeGreaterThan(7)
  expect(amountOf(text, 'portcullis_isolates')).toBe(3)
  expect(requests({ decision: 'error', reason: 'redis:unreachable', status: '503' })).toBe(6)
  // Five failures in a row open the breaker; the clock decides whether the sixth call is a probe.
  expect(
    amountOf(text, 'portcullis_redis_calls_total', { outcome: 'unreachable' }),
  ).toBeGreaterThan(4)
  const redis = { dependency: 'redis' }
  const opened = { ...redis, to: 'open' }
  expect(amountOf(text, 'portcullis_breaker_transitions_total', opened)).toBeGreaterThan(0)
  expect(amountOf(text, 'portcullis_breaker_open_isolates', redis)).toBe(1)
  for (const private_ of [secret, 'rita', PUBLIC_URL]) expect(text).not.toContain(private_)
  expect([...familiesOf(text).keys()]).toContain('portcullis_bans')
  if (hasPromtool) expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, output: '' })
})

describe('access to the metrics', () => {
  test('requires the permission unless the metrics are public [S64]', async () => {
    const { get } = isolate()
    const [reader, auditor, other] = [
      await gateway.token({ roles: ['reader'] }),
      await gateway.token({ roles: ['auditor'] }),
      await gateway.token({ roles: ['operator'], scope: 'portcullis:timings:read' }),
    ]
    expect((await get('/-/metrics')).status).toBe(401)
    for (const token of [reader, auditor, other]) {
      const refused = await get('/-/metrics', token)
      expect(refused.status).toBe(403)
      expect(refused.headers.get('www-authenticate')).toContain('scope="portcullis:metrics:read"')
      expect(refused.text).not.toContain('portcullis_requests_total')
    }
    const scoped = await gateway.token({ roles: [], scope: 'portcullis:metrics:read' })
    for (const token of [gateway.operator, scoped])
      expect((await get('/-/metrics', token)).status).toBe(200)
  })

  test('is open to every caller if the metrics are public, but a bad token is refused', async () => {
    const { get } = isolate({ METRICS_ACCESS: 'public' })
    const read = await get('/-/metrics')
    expect(read.status).toBe(200)
    expect(read.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(read.headers.get('cache-control')).toBe('no-store')
    expect((await get('/-/metrics', 'not.a.token')).status).toBe(401)
    expect((await get('/-/metrics/')).status).not.toBe(200)
  })

  test('costs one call per second, however many requests arrive', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { get } = isolate({ METRICS_ACCESS: 'public' })
    const callsOf = async (count: number) => {
      const before = gateway.redis.calls()
      for (let sent = 0; sent < count; sent++) expect((await get('/-/metrics')).status).toBe(200)
      return gateway.redis.calls() - before
    }
    expect(await callsOf(20)).toBe(1)
    vi.setSystemTime(Date.now() + 999)
    expect(await callsOf(20)).toBe(0)
    vi.setSystemTime(Date.now() + 1)
    expect(await callsOf(20)).toBe(1)
  })

  test('costs one call for simultaneous requests, and none while the breaker is open [R18]', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { get } = isolate({ METRICS_ACCESS: 'public' })
    const atOnce = async () => {
      const before = gateway.redis.calls()
      const answers = await Promise.all(Array.from({ length: 50 }, () => get('/-/metrics')))
      return [new Set(answers.map(({ status }) => status)), gateway.redis.calls() - before]
    }
    expect(await atOnce()).toEqual([new Set([200]), 1])
    const other = isolate({ METRICS_ACCESS: 'public' })
    gateway.redis.setAnswering(false)
    const statuses = await Promise.all(
      Array.from({ length: 50 }, () => other.get('/-/metrics').then(({ status }) => status)),
    )
    gateway.redis.setAnswering(true)
    expect(new Set(statuses)).toEqual(new Set([503]))
  })

  test('is refused with 503 while Redis is unreachable [R01]', async () => {
    const { get } = isolate({ METRICS_ACCESS: 'public' })
    gateway.redis.setAnswering(false)
    const refused = await get('/-/metrics')
    gateway.redis.setAnswering(true)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).not.toBeNull()
    expect(JSON.parse(refused.text).code).toBe('dependency_unavailable')
  })
})

describe('Server-Timing', () => {
  test('reports to operators the duration of each stage', async () => {
    const { get } = isolate()
    const timing = (await get('/-/admin/keys', gateway.operator)).headers.get('server-timing')
    expect(timing).toMatch(/^(?:[A-Za-z]+;dur=\d+, )+total;dur=\d+$/)
    for (const stage of ['authenticate', 'admit', 'authorize', 'validate'])
      expect(timing).toContain(`${stage};dur=`)
    const refused = await get('/orders', gateway.operator)
    expect(refused.status).toBe(403)
    expect(refused.headers.get('server-timing')).toContain('authorize;dur=')
    const scoped = await gateway.token({ roles: [], scope: 'orders:read portcullis:timings:read' })
    const answered = await get('/orders', scoped)
    expect(answered.status).toBe(200)
    expect(answered.headers.get('server-timing')).toContain('proxy;dur=')
  })

  test('is sent to no other caller', async () => {
    const { get } = isolate()
    const revoked = await gateway.token({ sub: 'gone', roles: ['operator'] })
    const revokeBefore = await gateway.admin('POST', '/revocations', {
      kind: 'subject',
      value: 'gone',
    })
    expect(revokeBefore.status).toBe(201)
    const requests = [
      [await get('/orders', await gateway.token({ roles: ['reader'] })), 200],
      [await get('/orders', await gateway.token({ roles: ['auditor'] })), 403],
      [await get('/public', '', { 'CF-Connecting-IP': '192.0.2.77' }), 200],
      [await get('/orders'), 401],
      [await get('/orders', `${gateway.operator}x`), 401],
      [await get('/orders', revoked), 401],
      [await get('/nowhere', gateway.operator), 404],
      [await get('/-/healthz', gateway.operator), 200],
    ] as const
    for (const [{ status, headers }, expected] of requests) {
      expect(status).toBe(expected)
      expect(headers.get('server-timing')).toBeNull()
    }
  })
})
