import { afterEach, describe, expect, inject, test } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import { storedEvents } from '../harness/audit-log.ts'
import { forget, setMode } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'
import { usualOrLong } from '../harness/long.ts'

const stack = inject('stack')
/** At once. Every tenth has the same outcome. */
const AT_ONCE = 50
const REQUESTS = AT_ONCE * usualOrLong(8, 20)

afterEach(async () => {
  await setMode(stack.rest, 'serve')
  await setMode(stack.origin, 'serve')
  await forget(stack.origin)
})

/** Waits until the expected number of events has arrived, and then for surplus events. */
async function eventsOf(requestIds: ReadonlySet<string>) {
  for (let tries = 0; tries < 60; tries++) {
    if (storedEvents(requestIds).length >= requestIds.size) break
    await new Promise((done) => setTimeout(done, 500))
  }
  await new Promise((done) => setTimeout(done, 2_000))
  return storedEvents(requestIds)
}

type Send = (gateway: string, token: string) => Promise<Response>

const get =
  (path: string, authorized = true): Send =>
  (gateway, token) =>
    fetch(gateway + path, authorized ? { headers: { authorization: `Bearer ${token}` } } : {})

describe('the audit trail [S66]', () => {
  test(`has exactly one event for each of ${REQUESTS} requests of mixed outcomes`, async () => {
    const kinds: readonly Send[] = [
      get('/orders'),
      get('/orders', false),
      get('/orders?limit=0'),
      get('/orders/not-an-id'),
      get('/nowhere'),
      get('/a%2fb'),
      (gateway) =>
        fetch(`${gateway}/orders`, {
          headers: { authorization: 'Bearer a.b.c', ...fromAddress(newAddress()) },
        }),
      (gateway, token) =>
        fetch(`${gateway}/orders`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: '{"item":"nails","quantity":1}',
        }),
      (gateway) => fetch(`${gateway}/orders`, { method: 'PUT' }),
      get('/public/ping', false),
    ]
    const statusOf = new Map<string, number>()
    for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
      const tokens = await Promise.all(Array.from({ length: AT_ONCE }, () => mint(stack.inlineKey)))
      await Promise.all(
        tokens.map(async (token, index) => {
          const send = kinds[index % kinds.length] as Send
          const response = await send(stack.gateways[index % 2 === 0 ? 0 : 1], token)
          await response.text()
          statusOf.set(response.headers.get('x-request-id') ?? '', response.status)
        }),
      )
    }
    expect(statusOf.size).toBe(REQUESTS)
    const events = await eventsOf(new Set(statusOf.keys()))
    expect(events.length).toBe(REQUESTS)
    expect(new Set(events.map(({ id }) => id)).size).toBe(REQUESTS)
    for (const event of events) {
      expect(event.status).toBe(statusOf.get(event.request_id))
      expect(event.decision === 'allow').toBe(event.status === 200)
    }
    const reasons = new Set(events.map(({ reason }) => reason.split(':')[0]))
    for (const reason of [
      'ok',
      'missing_token',
      'token_rejected',
      'permission_missing',
      'invalid_input',
      'ambiguous_path',
      'not_found',
      'method_not_allowed',
    ]) {
      expect(reasons, reason).toContain(reason)
    }
  })

  test('distinguishes an outage from a refusal, and names the dependency', async () => {
    const token = await mint(stack.inlineKey)
    await setMode(stack.rest, 'refuse')
    const redisDown = await get('/orders')(stack.gateways[0], token)
    await setMode(stack.rest, 'serve')
    await setMode(stack.origin, 'refuse')
    const originDown = await get('/orders')(stack.gateways[0], token)
    expect([redisDown.status, originDown.status]).toEqual([503, 502])
    const ids = [redisDown, originDown].map(({ headers }) => headers.get('x-request-id') ?? '')
    const events = await eventsOf(new Set(ids))
    const reasonOf = new Map(events.map(({ request_id, reason }) => [request_id, reason]))
    expect(reasonOf.get(ids[0] ?? '')).toBe('redis:unreachable')
    expect(reasonOf.get(ids[1] ?? '')).toBe('origin:unreachable')
    expect(events.map(({ decision }) => decision)).toEqual(['error', 'error'])
  })
})
