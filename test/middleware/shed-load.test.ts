import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import shipped from '../../portcullis.config.ts'
import { batchingAuditSink, SHED_EVENTS_PER_SECOND } from '../../src/audit/batching-sink.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { audit } from '../../src/middleware/audit.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { requestId } from '../../src/middleware/request-id.ts'
import { shedLoad } from '../../src/middleware/shed-load.ts'
import { startGateway } from '../rows/gateway.ts'

/** Creates an app behind `shedLoad` with a handler that responds on the test's command. */
function build(maxConcurrentRequests: number, now?: () => number) {
  const events: AuditEvent[] = []
  const held: ((response: Response) => void)[] = []
  const app = new Hono()
  app.onError(problemHandler())
  app.use(requestId(), audit({ sink: { record: (event) => void events.push(event) } }))
  app.use(shedLoad({ maxConcurrentRequests, ...(now && { now }) }))
  app.all('*', () => new Promise<Response>((resolve) => held.push(resolve)))
  const arrived = (count: number) => expect.poll(() => held.length).toBe(count)
  return { app, held, events, arrived }
}

describe('shedLoad', () => {
  test('refuses one request above the limit at once with 503 and Retry-After, and does not call the handler', async () => {
    const { app, held, events, arrived } = build(2)
    const waiting = [app.request('/a'), app.request('/b')]
    await arrived(2)
    const refused = await app.request('/c', { headers: { authorization: 'Bearer x' } })
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await refused.json()).toMatchObject({ code: 'overloaded', status: 503 })
    expect(held).toHaveLength(2)
    expect(events.map(({ reason, decision }) => [reason, decision])).toEqual([
      ['gateway:overloaded', 'error'],
    ])
    for (const answer of held) answer(new Response('late'))
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200])
  })

  test('admits again as soon as a request is answered or has failed', async () => {
    const { app, held, arrived } = build(1)
    const first = app.request('/')
    await arrived(1)
    held[0]?.(new Response('done'))
    await first
    const second = app.request('/')
    await arrived(2)
    held[1]?.(Promise.reject(new Error('oops')) as unknown as Response)
    expect((await second).status).toBe(500)
    const third = app.request('/')
    await arrived(3)
    held[2]?.(new Response('done'))
    expect((await third).status).toBe(200)
  })

  test('does not count a response that still streams', async () => {
    const { app, held, arrived } = build(1)
    const first = app.request('/')
    await arrived(1)
    held[0]?.(new Response(new ReadableStream({ pull: () => new Promise(() => {}) })))
    expect((await first).status).toBe(200)
    const second = app.request('/')
    await arrived(2)
    held[1]?.(new Response('done'))
    expect((await second).status).toBe(200)
  })

  test('admits a tenth more requests of operators', async () => {
    const { app, held, arrived } = build(10)
    const waiting = Array.from({ length: 10 }, () => app.request('/'))
    await arrived(10)
    expect((await app.request('/')).status).toBe(503)
    waiting.push(app.request('/-/admin/bans'))
    await arrived(11)
    expect((await app.request('/-/admin/bans')).status).toBe(503)
    expect((await app.request('/x/-/admin')).status).toBe(503)
    for (const answer of held) answer(new Response())
    await Promise.all(waiting)
  })

  test('does not lock the gateway forever after requests that ended abruptly', async () => {
    let nowMs = 1_000_000
    const { app, held, arrived } = build(3, () => nowMs)
    for (let count = 0; count < 3; count++) void app.request('/never-answered')
    await arrived(3)
    expect((await app.request('/')).status).toBe(503)
    // Twice the time for which the count remembers a request.
    nowMs += 64_000
    const alive = app.request('/')
    await arrived(4)
    held[3]?.(new Response('done'))
    expect((await alive).status).toBe(200)
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses %d as a number of requests',
    (max) => {
      expect(() => shedLoad({ maxConcurrentRequests: max })).toThrow(RangeError)
    },
  )
})

describe('a gateway at its limit of concurrent requests', () => {
  test('calls neither key set nor Redis nor origin for a further request, and still serves health and operators', async () => {
    const policy = { ...shipped, maxConcurrentRequests: 2 }
    const held: ((response: Response) => void)[] = []
    const gateway = await startGateway(policy, {
      send: () => new Promise<Response>((resolve) => held.push(resolve)),
    })
    try {
      const token = await gateway.token({})
      const orders = { path: '/orders', token, address: '192.0.2.1' }
      const waiting = [gateway.send(orders), gateway.send(orders)]
      await expect.poll(() => held.length, { timeout: 10_000 }).toBe(2)
      const calls = gateway.redis.calls()
      // A bad token is not verified either.
      for (const refused of [orders, { ...orders, token: 'not.a.token' }, { path: '/public/ping' }])
        expect(await gateway.send(refused)).toBe(503)
      expect(gateway.redis.calls()).toBe(calls)
      expect(held).toHaveLength(2)
      expect(await gateway.send({ path: '/-/healthz' })).toBe(200)
      expect(await gateway.send({ path: '/-/readyz' })).toBe(200)
      // There is one more place below /-/, so the answer is that credentials are missing.
      expect(await gateway.send({ path: '/-/admin/bans' })).toBe(401)
      for (const answer of held) answer(new Response('[]'))
      expect(await Promise.all(waiting)).toEqual([200, 200])
    } finally {
      await gateway.close()
    }
  })
})

describe('the audit trail of shed requests', () => {
  const event = (reason: string): AuditEvent => ({
    id: crypto.randomUUID(),
    time: '2026-01-01T00:00:00.000Z',
    requestId: 'r',
    traceId: '0'.repeat(32),
    actor: { issuer: null, subject: null, client: null, tenant: null, tokenIdHash: null },
    method: 'GET',
    route: null,
    decision: 'error',
    reason,
    status: 503,
    limits: [],
    durationsMs: {},
    address: 'unknown',
    colo: null,
  })

  test('has a bounded number of their events a second, counts the rest, and has all other events', async () => {
    const nowMs = 5_000_000
    const sent: string[] = []
    let lost = 0
    const sink = batchingAuditSink({
      now: () => nowMs,
      sleep: async () => {},
      transport: {
        async send(events, lostBefore) {
          sent.push(...events)
          lost += lostBefore
        },
      },
    })
    const duties: Promise<unknown>[] = []
    const record = (reason: string) => sink.record(event(reason), (duty) => duties.push(duty))
    for (let count = 0; count < 1_000; count++) record('gateway:overloaded')
    for (let count = 0; count < 10; count++) record('ok')
    await Promise.all(duties)
    const reasons = sent.map((text) => (JSON.parse(text) as AuditEvent).reason)
    const shed = reasons.filter((reason) => reason === 'gateway:overloaded').length
    expect(shed).toBe(SHED_EVENTS_PER_SECOND)
    expect(reasons.filter((reason) => reason === 'ok')).toHaveLength(10)
    expect(shed + lost).toBe(1_000)
  })
})
