/** The policy tester decides as the gateway over Redis does, request by request. */
import { randomUUID } from 'node:crypto'
import { definePolicy } from 'portcullis'
import { createIssuer, type Issuer, policyTester, type TestedRequest } from 'portcullis/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { AuditEvent } from '../../src/audit/event.ts'
import { composeServices } from '../../src/gateway/compose-services.ts'
import { createGateway } from '../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../src/gateway/runtime.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'

const newOrder = z.strictObject({ item: z.string().min(1), count: z.int().min(1) })
const policy = definePolicy({
  roles: { reader: ['orders:read'], writer: ['orders:*'] },
  limits: {
    standard: { limit: 5, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
    costly: { limit: 10, windowSeconds: 3_600, by: 'client', onUnavailable: 'deny', cost: 4 },
    watched: {
      limit: 1,
      windowSeconds: 3_600,
      by: 'address',
      onUnavailable: 'allow',
      mode: 'observe',
    },
  },
  abuse: { authenticationFailures: { limit: 3 }, bans: { violations: 5 } },
  routes: [
    { method: 'GET', path: '/ping', anonymous: true, limits: ['watched'] },
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
    { method: 'GET', path: '/reports', permission: 'orders:read', limits: ['costly'] },
    {
      method: 'GET',
      path: '/orders/:id',
      permission: { name: 'orders:audit', mode: 'observe' },
      input: { params: z.strictObject({ id: z.uuid() }) },
    },
    { method: 'POST', path: '/orders', permission: 'orders:write', input: { body: newOrder } },
  ],
})

const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'], tenant: 'acme', client: 'shop' }
const forged = `${'a'.repeat(40)}.${'b'.repeat(40)}.${'c'.repeat(40)}`

/** Requests in sequence: later ones meet the limits and bans of earlier ones. */
const SEQUENCE: readonly (readonly [string, TestedRequest?])[] = [
  ['GET /nothing'],
  ['DELETE /orders'],
  ['GET /orders'],
  ['GET /ping'],
  ['GET /ping'],
  ['GET /orders?page=2', { as: reader, headers: { 'x-auth-subject': 'root', 'x-own': '1' } }],
  ['GET /orders//', { as: reader }],
  ['POST /orders', { as: reader, body: { item: 'a', count: 1 } }],
  ['POST /orders', { as: writer, body: { item: 'a', count: 1 } }],
  ['POST /orders', { as: writer, body: { item: '', count: 0, extra: 1 } }],
  [
    'POST /orders',
    { as: writer, body: '{"item":', headers: { 'content-type': 'application/json' } },
  ],
  ['POST /orders', { as: writer, body: 'text', headers: { 'content-type': 'text/plain' } }],
  ['GET /orders', { as: { ...writer, scope: 'orders:write' } }],
  ['GET /orders', { as: { sub: 'carol' } }],
  [`GET /orders/${randomUUID()}`, { as: reader }],
  ['GET /orders/7', { as: reader }],
  ...Array.from({ length: 6 }, () => ['GET /orders', { as: reader }] as const),
  ...Array.from({ length: 3 }, () => ['GET /reports', { as: writer }] as const),
  ['GET /orders', { as: { ...reader, expiresInSeconds: -60 } }],
  ['GET /orders', { as: { ...reader, claims: { aud: 'https://elsewhere.test' } } }],
  ['GET /orders', { as: { ...reader, header: { typ: 'JWT' } } }],
  ...Array.from({ length: 4 }, () => ['GET /orders', { token: forged }] as const),
  ['GET /orders', { as: writer, address: '192.0.2.2' }],
  ['GET /orders', { token: forged, address: '192.0.2.2' }],
  ['HEAD /orders', { as: writer, address: '192.0.2.2' }],
]

describe('the policy tester', () => {
  let redis: TestRedis
  let origin: TestServer
  let issuer: Issuer
  const received: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> }[] =
    []
  beforeAll(async () => {
    redis = await startTestRedis()
    issuer = await createIssuer()
    origin = await startHttpServer((request, response) => {
      received.push({ url: request.url ?? '', headers: request.headers })
      response.end()
    })
  })
  afterAll(async () => {
    await redis.close()
    await origin.close()
  })

  /** Returns a function that sends the same requests to a gateway over Redis. */
  function gatewayOverRedis() {
    const events: AuditEvent[] = []
    const services = composeServices(
      {
        ...redisVars(redis),
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: origin.url,
        ISSUERS: JSON.stringify([issuer.entry]),
      },
      policy,
      WORKERS,
    )
    const auditSink = { record: (event: AuditEvent) => void events.push(event) }
    const gateway = createGateway({ ...services, auditSink }, policy)
    return async (line: string, { as, token, body, headers, address }: TestedRequest = {}) => {
      const [method = '', target = ''] = line.split(' ')
      const fields = new Headers(headers)
      fields.set('cf-connecting-ip', address ?? '192.0.2.1')
      if (as !== undefined) fields.set('authorization', `Bearer ${await issuer.token(as)}`)
      if (token !== undefined) fields.set('authorization', `Bearer ${token}`)
      if (typeof body === 'object') fields.set('content-type', 'application/json')
      const text = typeof body === 'object' ? JSON.stringify(body) : body
      const init = { method, headers: fields, ...(text !== undefined && { body: text as string }) }
      const behind: Promise<unknown>[] = []
      const context = {
        waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
        passThroughOnException() {},
      }
      received.length = 0
      const request = new Request(`https://gateway.test${target}`, init)
      const response = await gateway.fetch(request, {}, context as unknown as ExecutionContext)
      await Promise.allSettled(behind)
      const event = events.at(-1)
      const problem = event?.decision === 'allow' ? '' : await response.text()
      return {
        allowed: event?.decision === 'allow',
        status: response.status,
        route: event?.route,
        reason: event?.reason,
        observed: event?.observed ?? [],
        code: problem === '' ? undefined : JSON.parse(problem).code,
        limits: response.headers.get('ratelimit')?.replace(/;t=\d+/, ''),
        origin: received.map(({ url, headers }) => ({ path: url, ...identityIn(headers) }))[0],
      }
    }
  }

  test('decides a sequence of requests as the gateway over Redis, and sends the origin the same', async () => {
    const send = gatewayOverRedis()
    const tester = policyTester(policy)
    const reasons = new Set<string>()
    for (const [index, [line, request]] of SEQUENCE.entries()) {
      const expected = await send(line, request)
      const decision = await tester.request(line, request)
      const { allowed, status, route, reason, observed, response } = decision
      const upstream = decision.allowed ? decision.origin : undefined
      expect(
        {
          allowed,
          status,
          route,
          reason,
          observed,
          code: decision.allowed ? undefined : decision.code,
          limits: response.headers.get('ratelimit')?.replace(/;t=\d+/, ''),
          origin: upstream && { path: upstream.path, ...identityIn(upstream.headers) },
        },
        `request ${index}: ${line}`,
      ).toEqual(expected)
      reasons.add(reason)
    }
    // The sequence meets every stage of the pipeline that a policy configures.
    expect(reasons.size).toBeGreaterThan(12)
    expect([...reasons]).toEqual(
      expect.arrayContaining(['ok', 'rate_limited:standard', 'rate_limited:costly']),
    )
  })
})

/** Returns the headers that the gateway writes and that do not differ between two requests. */
function identityIn(headers: Readonly<Record<string, unknown>>) {
  const names = Object.keys(headers).filter((name) => /^x-(?:auth|forwarded|own)/.test(name))
  return Object.fromEntries(names.sort().map((name) => [name, headers[name]]))
}
