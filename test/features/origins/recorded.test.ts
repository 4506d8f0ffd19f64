/** What audit events and metrics say about hosts and origins: names of the policy, nothing of a caller. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { auditEventSchema } from '../../../src/audit/event-schema.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, type Policy } from '../../../src/index.ts'
import { createCounters } from '../../../src/observability/metrics/counters.ts'
import { createRequestCounter } from '../../../src/observability/metrics/request-metrics.ts'
import { type RecordingOrigin, startOrigin, startWorld, type World } from './world.ts'

let world: World
let orders: RecordingOrigin
let next: RecordingOrigin
let policy: Policy

beforeAll(async () => {
  world = await startWorld()
  orders = await startOrigin('orders')
  next = await startOrigin('next')
  policy = definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    abuse: { bans: false, authenticationFailures: false },
    origins: origins({
      orders: { url: orders.url, canary: { origin: 'next', percent: 50 } },
      next: { url: next.url },
      down: { url: 'http://127.0.0.1:1' },
    }),
    routes: [
      { method: 'GET', path: '/plain', anonymous: true },
      {
        method: 'GET',
        path: '/orders',
        host: '*.example.com',
        origin: 'orders',
        permission: 'orders:read',
      },
      { method: 'GET', path: '/orders', host: 'down.test', origin: 'down', anonymous: true },
    ],
  })
})
afterAll(async () => {
  await Promise.all([orders.close(), next.close()])
  await world.close()
})

/** Sends requests to a new gateway, and returns their events. */
async function eventsOf(...requests: readonly (readonly [target: string, token?: string])[]) {
  const events: AuditEvent[] = []
  const send = world.gateway(policy, { ORIGIN_URL: next.url }, events)
  for (const [target, token] of requests) await (await send(target, { token })).text()
  for (const event of events) auditEventSchema.parse(event)
  return events
}

test('an event names the host pattern and the origin of its route, also if it is refused', async () => {
  const events = await eventsOf(
    ['api.example.com/plain'],
    ['Secret-Tenant.example.com/orders'],
    ['down.test/orders'],
    ['caller.test/nothing'],
  )
  expect(events.map(({ route, host, origin, status }) => [route, host, origin, status])).toEqual([
    ['/plain', undefined, undefined, 200],
    ['/orders', '*.example.com', 'orders', 401],
    ['/orders', 'down.test', 'down', 502],
    [null, undefined, undefined, 404],
  ])
  expect(JSON.stringify(events)).not.toMatch(/tenant.example|caller\.test/i)
})

test('an event names the canary that got the request', async () => {
  const named = { orders: 0, next: 0 }
  for (let caller = 0; caller < 12; caller++) {
    const before = next.received.length
    const token = await world.token(`caller-${caller}`, { roles: ['reader'] })
    const [event] = await eventsOf(['a.example.com/orders', token])
    const reached = next.received.length > before ? 'next' : 'orders'
    expect(event).toMatchObject({ status: 200, host: '*.example.com', origin: reached })
    named[reached] += 1
  }
  expect(Math.min(named.orders, named.next)).toBeGreaterThan(0)
})

test('metrics name the host pattern with the route, and count what each origin answered', async () => {
  const counters = createCounters()
  const count = createRequestCounter(counters)
  const token = await world.token('alice', { roles: ['reader'] })
  const events = await eventsOf(
    ['api.example.com/plain'],
    ['a.example.com/orders'],
    ['b.example.com/orders', token],
    ['down.test/orders'],
  )
  for (const event of events) count(event)
  const counted = [...counters.take().keys()].map((name) => JSON.parse(name) as string[])
  const labelsOf = (metric: string) =>
    counted.flatMap(([name, ...labels]) => (name === metric ? [labels] : []))
  expect(labelsOf('portcullis_requests_total').map(([, route]) => route)).toEqual([
    '/plain',
    '*.example.com/orders',
    '*.example.com/orders',
    'down.test/orders',
  ])
  const origin = events[2]?.origin
  // The refused request was not forwarded, and the first one is for the origin without a name.
  const timed = labelsOf('portcullis_origin_duration_seconds')
  expect(new Set(timed.map(([name, status]) => `${name} ${status}`))).toEqual(
    new Set([`${origin} 200`, 'down 502']),
  )
})
