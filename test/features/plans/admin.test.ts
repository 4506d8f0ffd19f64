/** Operators give plans: in force from the next request on, in every isolate. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operators } from '../../../src/features/operators/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, REMOTE_ISSUER, startGateway, type TestGateway } from '../operators/gateway.ts'

const policy = definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  features: [operators()],
  limits: {
    plan: plans({
      plans: { free: '2/min', pro: { rate: '10/min', perMonth: 100 }, tiny: { perDay: 1 } },
      default: 'free',
      planBy: ['key', 'subject', 'client', 'tenant'],
    }),
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['plan'] }],
})

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ policy })
})
afterAll(() => gateway.close())

const headersOf = async (token: string, at: 0 | 1) =>
  (await gateway.call(token, at, '/orders')).headers.get('ratelimit-policy')
const FREE = '"plan";q=2;w=60'
const PRO = '"plan";q=10;w=60, "plan-month";q=100;w=2592000'

test('an assignment applies at once in another isolate, and its removal too', async () => {
  const sub = crypto.randomUUID()
  const token = await gateway.token({ sub })
  expect(await headersOf(token, 1)).toBe(FREE)
  const order = { by: 'subject', value: sub, plan: 'pro' }
  const { status, body, text } = await gateway.admin('POST', '/plans/assignments', order)
  expect(status, text).toBe(201)
  expect(body).toMatchObject({ ...order, issuer: null, expiresAt: null })
  expect(await headersOf(token, 1)).toBe(PRO)
  const { body: listed } = await gateway.admin('GET', '/plans')
  expect(listed.plans).toEqual([
    { name: 'free', default: true, limits: { plan: 2 } },
    { name: 'pro', default: false, limits: { plan: 10, 'plan-month': 100 } },
    { name: 'tiny', default: false, limits: { 'plan-day': 1 } },
  ])
  expect(listed.assignments).toContainEqual(body)
  expect((await gateway.admin('DELETE', `/plans/assignments/${body.id}`)).status).toBe(204)
  expect((await gateway.admin('DELETE', `/plans/assignments/${body.id}`)).status).toBe(404)
  expect(await headersOf(token, 1)).toBe(FREE)
})

test('the plan of an API key applies at once, also where the key is cached, and after a rotation', async () => {
  const described = { name: 'nightly', subject: 'reports', roles: ['reader'] }
  const { body: key } = await gateway.admin('POST', '/api-keys', described)
  expect(await headersOf(key.apiKey, 1)).toBe(FREE)
  const order = { by: 'key', value: key.id, plan: 'pro' }
  expect((await gateway.admin('POST', '/plans/assignments', order)).status).toBe(201)
  expect(await headersOf(key.apiKey, 1)).toBe(PRO)
  expect(await headersOf(key.apiKey, 0)).toBe(PRO)
  const { body: rotated } = await gateway.admin('POST', `/api-keys/${key.id}/secret`, {})
  expect(await headersOf(rotated.apiKey, 1)).toBe(PRO)
})

test('the 429 of a quota names its limit, its plan and when it renews, in one call to Redis', async () => {
  const described = { name: 'nightly', subject: 'reports', roles: ['reader'], plan: 'tiny' }
  const renewsAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT00:00:00Z$/)
  const named = { code: 'rate_limited', limit: 'plan-day', plan: 'tiny', renewsAt }
  const detail = expect.stringMatching(
    /^The limit "plan-day" of the plan "tiny" is exhausted until .*T00:00:00Z\.$/,
  )
  const sub = crypto.randomUUID()
  const order = { by: 'subject', value: sub, plan: 'tiny' }
  await gateway.admin('POST', '/plans/assignments', order)
  const { body: key } = await gateway.admin('POST', '/api-keys', described)
  for (const credential of [key.apiKey, await gateway.token({ sub })]) {
    expect((await gateway.call(credential, 0)).status).toBe(200)
    const origin = gateway.originCalls()
    // The other isolate has not cached the key. Then the refusal is cached.
    for (const calls of [1, 0]) {
      const before = gateway.redis.calls()
      const refused = await gateway.call(credential, 1)
      expect(refused.status).toBe(429)
      expect(refused.body).toMatchObject({ ...named, detail })
      expect(gateway.redis.calls() - before).toBe(calls)
    }
    // The isolate with the cached key.
    expect((await gateway.call(credential, 0)).body).toMatchObject({ ...named, detail })
    expect(gateway.originCalls()).toBe(origin)
  }
})

test('the 429 of an override names no plan; that of a rate names the default plan', async () => {
  const described = { name: 'nightly', subject: 'reports', roles: ['reader'] }
  const { body: key } = await gateway.admin('POST', '/api-keys', described)
  const override = { limit: 'plan', value: key.id, requests: 1 }
  expect((await gateway.admin('POST', '/limits/overrides', override)).status).toBe(201)
  expect((await gateway.call(key.apiKey, 1)).status).toBe(200)
  const { body } = await gateway.call(key.apiKey, 1)
  expect(body).toMatchObject({ code: 'rate_limited', limit: 'plan' })
  expect([body.plan, body.renewsAt]).toEqual([undefined, undefined])
  const free = await gateway.token({ sub: crypto.randomUUID() })
  for (const _ of [1, 2]) await gateway.call(free, 1)
  expect((await gateway.call(free, 1)).body).toMatchObject({ limit: 'plan', plan: 'free' })
})

test('an assignment of one issuer does not apply to the same name of another one', async () => {
  const sub = crypto.randomUUID()
  const order = { by: 'subject', value: sub, plan: 'pro', issuer: REMOTE_ISSUER }
  expect((await gateway.admin('POST', '/plans/assignments', order)).status).toBe(201)
  expect(await headersOf(await gateway.token({ sub }), 0)).toBe(FREE)
})

test('a plan that the policy does not have is refused with the known ones', async () => {
  const order = { by: 'client', value: 'app', plan: 'gold' }
  const { status, text } = await gateway.admin('POST', '/plans/assignments', order)
  expect(status).toBe(422)
  expect(text).toContain('must be a plan of the policy: free, pro, tiny')
})

test('an operator with a tenant cannot give plans', async () => {
  const token = await gateway.token({ sub: 'op', roles: ['operator'], tenant: 'acme' })
  const order = { by: 'tenant', value: 'acme', plan: 'pro' }
  const reply = await gateway.admin('POST', '/plans/assignments', order, { as: token })
  expect(reply.status).toBe(403)
})

test('the plan of a key is set when it is created or changed, shown, and removed with the key', async () => {
  const described = { name: 'nightly', subject: 'reports', roles: ['reader'], plan: 'pro' }
  const { body: key } = await gateway.admin('POST', '/api-keys', described)
  expect(key.plan).toBe('pro')
  expect(await headersOf(key.apiKey, 1)).toBe(PRO)
  const path = `/api-keys/${key.id}`
  const removed = await gateway.admin('PATCH', path, { plan: null })
  expect(removed.body).toMatchObject({ name: 'nightly', plan: null })
  expect(await headersOf(key.apiKey, 1)).toBe(FREE)
  expect((await gateway.admin('PATCH', path, { plan: 'pro' })).body.plan).toBe('pro')
  expect((await gateway.admin('PATCH', path, { name: 'renamed' })).body.plan).toBe('pro')
  expect((await gateway.admin('GET', path)).body).toMatchObject({ name: 'renamed', plan: 'pro' })
  expect(await headersOf(key.apiKey, 1)).toBe(PRO)
  expect((await gateway.admin('DELETE', path)).status).toBe(204)
  expect((await gateway.redis.direct.keys(`pc:plan*${key.id}*`)).length).toBe(0)
  expect((await gateway.admin('GET', '/plans')).body.assignments).not.toContainEqual(
    expect.objectContaining({ value: key.id }),
  )
})

test('only an operator that may give plans creates or changes a key with a plan', async () => {
  const described = { name: 'nightly', subject: 'reports' }
  const { body: key } = await gateway.admin('POST', '/api-keys', described)
  const scope = 'portcullis:api-keys:create portcullis:api-keys:update'
  const limited = await gateway.token({ sub: 'keys', roles: [], scope })
  const path = `/api-keys/${key.id}`
  expect((await gateway.admin('PATCH', path, { name: 'x' }, { as: limited })).status).toBe(200)
  for (const plan of ['pro', null]) await gateway.expectRefused('PATCH', path, { plan }, limited)
  await gateway.expectRefused('POST', '/api-keys', { ...described, plan: 'pro' }, limited)
  const ofTenant = await gateway.token({ sub: 'op', roles: ['operator'], tenant: 'acme' })
  await gateway.expectRefused('POST', '/api-keys', { ...described, plan: 'pro' }, ofTenant)
  const { status, text } = await gateway.admin('PATCH', path, { plan: 'gold' })
  expect([status, text]).toEqual([422, expect.stringContaining('of the policy: free, pro')])
})

test('a key cannot get a plan from a policy without plans', async () => {
  const other = gateway.isolate(
    definePolicy({
      roles: { operator: ['portcullis:*'] },
      features: [operators()],
      limits: {},
      routes: [{ method: 'GET', path: '/public', anonymous: true }],
    }),
  )
  const response = await other.fetch(
    new Request(`${PUBLIC_URL}/-/admin/api-keys`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${gateway.operator}`,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ name: 'nightly', subject: 'reports', plan: 'pro' }),
    }),
  )
  expect([response.status, await response.json()]).toMatchObject([
    422,
    { errors: [{ path: '/plan', message: 'must be absent, because the policy has no plans' }] },
  ])
})
