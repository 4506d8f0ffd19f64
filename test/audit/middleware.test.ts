import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { expect, test, vi } from 'vitest'
import type { AuditEvent, AuditSink } from '../../src/audit/event.ts'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { Denied, Unavailable } from '../../src/errors.ts'
import { audit } from '../../src/middleware/audit.ts'
import { type GatewayVariables, observe } from '../../src/middleware/context.ts'
import { problemHandler } from '../../src/middleware/problem-handler.ts'
import { definePolicy, type PolicyRoute } from '../../src/policy/policy.ts'
import { policyTester } from '../../src/testing/policy-tester.ts'

const RULE = { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'allow' } as const
const ROUTE: PolicyRoute = {
  method: 'GET',
  path: '/orders/:id',
  permission: 'orders:read',
  limits: [
    { name: 'standard', ...RULE },
    { name: 'expensive', ...RULE, limit: 30 },
  ],
  input: {},
  maxBodyBytes: 0,
  originTimeoutMs: 1_000,
  forwardAuthorization: false,
  forwardCookies: false,
  webSocketOrigins: [],
  dpop: false,
  coalesce: false,
}
const TOKEN = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl'

/** A clock that advances by a millisecond with each reading, and ids in order. */
function gatewayWith(sink?: AuditSink) {
  const events: AuditEvent[] = []
  let nowMs = Date.parse('2026-11-20T12:00:00.000Z')
  let id = 0
  const app = new Hono<{ Variables: GatewayVariables }>()
  app.onError((error, c) => c.text('refused', error instanceof Denied ? 403 : 503))
  app.use(
    audit({
      sink: sink ?? { record: (event) => void events.push(event) },
      now: () => nowMs++,
      newId: () => `01a1f920-fe19-76f3-a8bb-${String(id++).padStart(12, '0')}`,
    }),
  )
  return { app, events }
}

test('an allowed request is one event with actor, action, outcome, reason and ids, and without credentials [S27, S66]', async () => {
  const { app, events } = gatewayWith()
  app.get('/orders/:id', (c) => {
    c.set('portcullis.requestId', 'request-1')
    c.set('portcullis.trace', {
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      spanId: '00f067aa0ba902b7',
      parentSpanId: undefined,
      isSampled: true,
      traceparent: '',
      tracestate: '',
    })
    c.set('portcullis.clientAddress', '2001:db8:1:2::/64')
    c.set('portcullis.route', ROUTE)
    c.get('portcullis.timeline').enter('authenticate')
    c.set('portcullis.principal', {
      issuer: 'https://issuer.example',
      tokenIssuer: 'https://issuer.example',
      subject: 'alice',
      client: 'web',
      tenant: undefined,
      session: undefined,
      roles: ['reader'],
      scopes: [],
      tokenId: 'jti-1',
      tokenIdHash: 'hash-1',
      confirmation: undefined,
      issuedAtSeconds: 1,
      expiresAtSeconds: 2,
    })
    c.get('portcullis.timeline').enter('admit')
    const [standard] = ROUTE.limits
    if (standard === undefined) throw new Error('the route has limits')
    c.set('portcullis.rateLimits', [
      { rule: standard, limit: 100, remaining: 7, resetMs: 0, admitted: true },
    ])
    c.set('portcullis.uncountedLimits', ['expensive'])
    return c.text('fine', 201)
  })
  const response = await app.request('/orders/7?access_token=secret', {
    headers: { Authorization: `Bearer ${TOKEN}`, Cookie: 'session=secret' },
  })
  expect(response.status).toBe(201)
  expect(events).toEqual([
    {
      id: '01a1f920-fe19-76f3-a8bb-000000000000',
      time: '2026-11-20T12:00:00.002Z',
      requestId: 'request-1',
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      actor: {
        issuer: 'https://issuer.example',
        subject: 'alice',
        client: 'web',
        tenant: null,
        tokenIdHash: 'hash-1',
      },
      method: 'GET',
      route: '/orders/:id',
      decision: 'allow',
      reason: 'ok',
      status: 201,
      limits: [
        { name: 'standard', limit: 100, remaining: 7 },
        { name: 'expensive', limit: 30, remaining: 0, unavailable: true },
      ],
      durationsMs: { authenticate: 1, admit: 1 },
      address: '2001:db8:1:2::/64',
      colo: null,
      grants: { roles: ['reader'], scopes: [] },
    },
  ])
  auditEventSchema.parse(events[0])
  expect(JSON.stringify(events)).not.toMatch(/secret|eyJ|Bearer|jti-1/)
})

test('the data centre is recorded after any request has provided it [S66]', async () => {
  const { app, events } = gatewayWith()
  app.get('/orders', (c) => c.text('fine'))
  const from = (cf: object | undefined) =>
    app.request(Object.defineProperty(new Request('http://gateway/orders'), 'cf', { value: cf }))
  await from(undefined)
  await from({ colo: 7 })
  await from({ colo: 'FRA' })
  await from(undefined)
  expect(events.map(({ colo }) => colo)).toEqual([null, null, 'FRA', 'FRA'])
})

test("an error of the origin is an allowed request with the origin's status [S66]", async () => {
  const { app, events } = gatewayWith()
  app.get('/orders', (c) => c.text('broken', 500))
  await app.request('/orders')
  expect(events).toMatchObject([{ decision: 'allow', reason: 'ok', status: 500 }])
})

test('a refusal is one event with its precise reason, and the origin is not called [S66]', async () => {
  const { app, events } = gatewayWith()
  let called = false
  app.use(() => {
    throw new Denied({ code: 'token_rejected', check: 'exp' })
  })
  app.get('/orders', (c) => {
    called = true
    return c.text('fine')
  })
  const response = await app.request('/orders', { headers: { Authorization: `Bearer ${TOKEN}` } })
  expect(response.status).toBe(403)
  expect(called).toBe(false)
  expect(events).toMatchObject([
    {
      decision: 'deny',
      reason: 'token_rejected:exp',
      status: 403,
      route: null,
      address: 'unknown',
    },
  ])
  expect(events[0]?.actor).toEqual({
    issuer: null,
    subject: null,
    client: null,
    tenant: null,
    tokenIdHash: null,
  })
  auditEventSchema.parse(events[0])
  expect(JSON.stringify(events)).not.toContain(TOKEN)
})

test('a failed dependency and a defect are one error event each, without the error text', async () => {
  const { app, events } = gatewayWith()
  app.get('/redis', () => {
    throw new Unavailable('redis', 'timeout', { cause: new Error('EVAL secret') })
  })
  app.get('/defect', () => {
    throw new TypeError('secret is undefined')
  })
  expect((await app.request('/redis')).status).toBe(503)
  expect((await app.request('/defect')).status).toBe(503)
  expect(events).toMatchObject([
    { decision: 'error', reason: 'redis:timeout', status: 503 },
    { decision: 'error', reason: 'internal_error', status: 503 },
  ])
  expect(JSON.stringify(events)).not.toContain('secret')
})

test('a thrown value that is not an Error is audited and rethrown', async () => {
  const { app, events } = gatewayWith()
  app.get('/odd', () => {
    throw 'a string'
  })
  await expect(async () => app.request('/odd')).rejects.toBe('a string')
  expect(events).toMatchObject([{ decision: 'error', reason: 'internal_error', status: 500 }])
})

test("an HTTPException of the app's handler is its response: the request was allowed", async () => {
  const { app, events } = gatewayWith()
  app.onError(problemHandler())
  app.get('/gone', () => {
    throw new HTTPException(410)
  })
  expect((await app.request('/gone')).status).toBe(410)
  expect(events).toMatchObject([{ decision: 'allow', reason: 'ok', status: 410 }])
})

test.each([403, 200, 503] as const)(
  'an HTTPException with %i in a stage of the gateway is a refusal, and no origin is called',
  async (status) => {
    const limit = { limit: 9, windowSeconds: 60, onUnavailable: 'deny' } as const
    const by = () => {
      throw new HTTPException(status)
    }
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: { own: { ...limit, by } },
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['own'] }],
    })
    const origin = vi.fn(() => new Response())
    const tester = policyTester(policy, { origin })
    const decided = await tester.request('GET /orders', { as: { roles: ['reader'] } })
    expect(decided).toMatchObject({ allowed: false, status, reason: 'http_exception' })
    expect(origin).not.toHaveBeenCalled()
  },
)

test('an anonymous caller has no actor', async () => {
  const { app, events } = gatewayWith()
  app.get('/public/ping', (c) => {
    c.set('portcullis.principal', null)
    return c.text('pong')
  })
  await app.request('/public/ping')
  expect(events[0]).toMatchObject({ decision: 'allow', actor: { subject: null } })
})

test('a sink that throws does not change the response [R20]', async () => {
  const { app } = gatewayWith({
    record() {
      throw new Error('queue is unavailable')
    },
  })
  app.get('/orders', (c) => c.text('fine'))
  const response = await app.request('/orders')
  expect(response.status).toBe(200)
  expect(await response.text()).toBe('fine')
})

test('the response does not wait for the sink', async () => {
  const never = new Promise<never>(() => {})
  const { app } = gatewayWith({ record: (_, waitUntil) => waitUntil(never) })
  app.get('/orders', (c) => c.text('fine'))
  expect((await app.request('/orders')).status).toBe(200)
})

test('waitUntil is called with the whole pipeline before any decision [R22]', async () => {
  const { app, events } = gatewayWith()
  const pending: Promise<unknown>[] = []
  const gate = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  app.get('/slow', async (c) => {
    reached.resolve()
    await gate.promise
    return c.text('late')
  })
  const context = { waitUntil: (promise: Promise<unknown>) => pending.push(promise) }
  const answer = app.request('/slow', {}, {}, {
    ...context,
    passThroughOnException() {},
  } as unknown as ExecutionContext)
  await reached.promise
  expect(events).toHaveLength(0)
  expect(pending).toHaveLength(1)
  gate.resolve()
  // The client has disconnected: only the work in waitUntil continues.
  await Promise.all(pending)
  expect(events).toMatchObject([{ decision: 'allow', status: 200 }])
  await answer
})

test('the event lists each rule in observe mode that would have refused, once [S66]', async () => {
  const { app, events } = gatewayWith()
  app.get('/observed', (c) => {
    for (const reason of ['rate_limited:standard', 'banned:address', 'rate_limited:standard'])
      observe(c, reason)
    return c.text('fine')
  })
  app.get('/plain', (c) => c.text('fine'))
  await app.request('/observed')
  await app.request('/plain')
  expect(events.map(({ observed }) => observed)).toEqual([
    ['rate_limited:standard', 'banned:address'],
    undefined,
  ])
  for (const event of events) expect(auditEventSchema.parse(event)).toEqual(event)
})
