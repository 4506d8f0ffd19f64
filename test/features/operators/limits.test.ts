import { afterAll, beforeAll, expect, test } from 'vitest'
import { operators } from '../../../src/features/operators/index.ts'
import { upstash } from '../../../src/features/upstash/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const few = async (token: string, at: 0 | 1 = 0) => (await gateway.call(token, at, '/few')).status
const override = async (body: object) => {
  const reply = await gateway.admin('POST', '/limits/overrides', { limit: 'few', ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body
}

test("the list shows the policy's limits and how each one counts", async () => {
  const { body } = await gateway.admin('GET', '/limits')
  expect(body.limits).toContainEqual({
    name: 'few',
    limit: 2,
    windowSeconds: 3_600,
    by: 'subject',
    onUnavailable: 'deny',
    mode: 'enforce',
    engine: 'exact',
    cost: 1,
    lease: null,
  })

  expect(body.limits).toContainEqual(expect.objectContaining({ name: 'perPath', by: 'custom' }))
})

test('the list shows the key, the cost of a request and the lease of each limit', async () => {
  const ten = { limit: 10, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } as const
  const other = definePolicy({
    roles: { operator: ['portcullis:*'] },
    revocation: { maxStalenessMs: 1_000 },
    features: [operators()],
    limits: {
      ahead: { ...ten, cost: 2, lease: { max: 8, ttlMs: 200 } },
      approximate: { ...ten, engine: upstash() },
      operators: { ...ten, limit: 10_000 },
    },
    routes: [{ method: 'GET', path: '/orders', anonymous: true }],
  })
  const { fetch } = createGateway(composeServices(gateway.env, other, WORKERS), other)
  const headers = { Authorization: `Bearer ${gateway.operator}`, 'CF-Connecting-IP': '192.0.2.1' }
  const answer = await fetch(new Request(`${PUBLIC_URL}/-/admin/limits`, { headers }))
  expect(await answer.json()).toMatchObject({
    limits: [
      { name: 'ahead', engine: 'exact', cost: 2, lease: { max: 8, ttlMs: 200 } },
      { name: 'approximate', engine: 'upstash', cost: 1, lease: null },
      { name: 'operators', engine: 'exact', cost: 1, lease: null },
    ],
  })
})

test('an override replaces the limit until it is deleted, for its subject only', async () => {
  const [sub, other] = [crypto.randomUUID(), crypto.randomUUID()]
  const [token, others] = [await gateway.token({ sub }), await gateway.token({ sub: other })]
  const { id, ...view } = await override({ value: sub, requests: 4, expiresInSeconds: 600 })
  expect(view).toMatchObject({ limit: 'few', value: sub, issuer: null, requests: 4 })
  const reply = await gateway.call(token, 0, '/few')
  expect(reply.headers.get('ratelimit')).toMatch(/^"few";r=3;/)
  expect([await few(token), await few(token), await few(token)]).toEqual([200, 200, 200])
  expect(await few(token)).toBe(429)
  expect([await few(others), await few(others), await few(others)]).toEqual([200, 200, 429])
  expect((await gateway.admin('DELETE', `/limits/overrides/${id}`)).status).toBe(204)
  expect((await gateway.admin('DELETE', `/limits/overrides/${id}`)).status).toBe(404)
  const fresh = await gateway.token({ sub })
  expect(await few(fresh, 1)).toBe(429)
})

test('a reset starts a new window in an isolate that had not refused', async () => {
  const sub = crypto.randomUUID()
  const token = await gateway.token({ sub })
  expect([await few(token), await few(token), await few(token)]).toEqual([200, 200, 429])
  const reset = await gateway.admin('POST', '/limits/reset', { limit: 'few', value: sub })
  expect(reset.status).toBe(204)
  expect(reset.text).toBe('')
  expect(await few(token, 1)).toBe(200)
})

test('an override replaces the earlier override of the same windows', async () => {
  const sub = crypto.randomUUID()
  const first = await override({ value: sub, requests: 1 })
  const partly = await override({ value: sub, requests: 3, issuer: REMOTE_ISSUER })
  const ids = async () =>
    (await gateway.admin('GET', '/limits?limit=200')).body.overrides
      .filter(({ value }: { value: string }) => value === sub)
      .map(({ id }: { id: string }) => id)
  expect(await ids()).toEqual([partly.id, first.id])
  const second = await override({ value: sub, requests: 5 })
  expect(await ids()).toEqual([second.id])
  expect((await gateway.admin('DELETE', `/limits/overrides/${first.id}`)).status).toBe(404)
  const reply = await gateway.call(await gateway.token({ sub }), 0, '/few')
  expect(reply.headers.get('ratelimit')).toMatch(/^"few";r=4;/)
})

test('deleting a partly replaced override leaves the other windows unchanged', async () => {
  const sub = crypto.randomUUID()
  const all = await override({ value: sub, requests: 9 })
  await override({ value: sub, requests: 7, issuer: REMOTE_ISSUER })
  await gateway.admin('DELETE', `/limits/overrides/${all.id}`)
  const remote = await gateway.call(await gateway.token({ sub }, REMOTE_ISSUER), 0, '/few')
  expect(remote.headers.get('ratelimit')).toMatch(/^"few";r=6;/)
  const own = await gateway.call(await gateway.token({ sub }), 0, '/few')
  expect(own.headers.get('ratelimit')).toMatch(/^"few";r=1;/)
})

test('a limit by address accepts addresses in the form that limits count them', async () => {
  const { value } = await override({ limit: 'anonymous', value: '2001:db8::7', requests: 50 })
  expect(value).toBe('2001:db8:0:0::/64')
  const reply = await gateway.send('/public', { headers: { 'CF-Connecting-IP': '2001:db8::8' } })
  expect(reply.headers.get('ratelimit')).toMatch(/^"anonymous";r=49;/)
})

test.each([
  ['/limit', { limit: 'constructor', value: 'x' }],
  ['/limit', { limit: 'none', value: 'x' }],
  ['/issuer', { limit: 'few', value: 'x', issuer: 'https://unknown.test' }],
  ['/issuer', { limit: 'anonymous', value: '192.0.2.1', issuer: REMOTE_ISSUER }],
  ['/value', { limit: 'anonymous', value: 'alice' }],
])('%s is refused in %j', async (path, body) => {
  for (const [call, sent] of [
    ['/limits/reset', body],
    ['/limits/overrides', { ...body, requests: 1 }],
  ] as const) {
    const reply = await gateway.admin('POST', call, sent)
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toMatchObject([{ in: 'body', path }])
  }
})
