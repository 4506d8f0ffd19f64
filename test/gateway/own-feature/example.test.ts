/** The feature in `examples/feature`, from outside: it is described, guarded and recorded without a change of the core. */
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { checkFeatures } from '../../../cli/doctor/policy.ts'
import policy from '../../../examples/feature/policy.ts'
import { startGateway, type TestGateway } from '../../features/operators/gateway.ts'
import { ROOT } from '../../harness/process.ts'

const CONTACT = 'ops@notes.test'
const FREEZE = { ticket: 'OPS-7', seconds: 600 }
const FROZEN = {
  type: 'urn:portcullis:problem:change_freeze_active',
  title: 'Change freeze',
  status: 423,
  detail: `Nothing can be changed now. Ask ${CONTACT}.`,
  code: 'change_freeze_active',
  requestId: expect.any(String),
}

let gateway: TestGateway
let editor: string
beforeAll(async () => {
  gateway = await startGateway({ policy, variables: { CHANGE_FREEZE_CONTACT: CONTACT } })
  editor = await gateway.token({ sub: 'eve', roles: ['editor'] })
})
afterAll(() => gateway?.close())
beforeEach(() => gateway.redis.direct.flushall())

const write = (at: 0 | 1 = 0) =>
  gateway.send('/notes', { method: 'POST', headers: { authorization: `Bearer ${editor}` } }, at)
const freeze = (as = gateway.operator) => gateway.admin('PUT', '/change-freeze', FREEZE, { as })

test('an operator freezes all gateways: writes are 423 without a call of the origin, reads pass', async () => {
  expect((await write()).status).toBe(200)
  expect((await freeze()).status).toBe(204)
  const before = gateway.originCalls()
  const refused = await write(1)
  expect(refused.status).toBe(423)
  expect(refused.headers.get('content-type')).toBe('application/problem+json')
  expect(refused.body).toEqual(FROZEN)
  expect(gateway.originCalls()).toBe(before)
  expect((await gateway.call(editor, 1, '/notes')).status).toBe(200)
})

test('the route of the feature is open to anonymous callers, counted by its limit, and not stored', async () => {
  await freeze()
  const state = await gateway.send('/-/change-freeze')
  expect(state.body).toEqual({ frozen: true, ticket: FREEZE.ticket })
  expect(state.headers.get('cache-control')).toBe('no-store')
  expect(state.headers.get('ratelimit-policy')).toContain('"anonymous"')
})

test('the call needs its own permission, and its input is checked', async () => {
  const others = await gateway.token({ sub: 'ann', roles: ['editor'] })
  const refused = await freeze(others)
  expect(refused.status).toBe(403)
  expect(refused.headers.get('www-authenticate')).toContain('portcullis:change-freeze:begin')
  expect((await freeze(await gateway.token({ sub: 'rea', roles: ['release'] }))).status).toBe(204)
  const wrong = await gateway.admin('PUT', '/change-freeze', { ...FREEZE, ticket: 'x' })
  expect(wrong.status).toBe(422)
  const ofTenant = await gateway.token({ sub: 'tom', roles: ['operator'], tenant: 'acme' })
  expect((await freeze(ofTenant)).status).toBe(403)
})

test('an operator cannot grant the permission of the call without having it', async () => {
  const narrow = { sub: 'nil', roles: ['editor'], scope: 'portcullis:tokens:mint' }
  const minter = await gateway.token({ sub: 'min', roles: [], scope: narrow.scope })
  const minted = (roles: readonly string[]) =>
    gateway.admin('POST', '/tokens', { subject: 'x', roles }, { as: minter })
  expect((await minted(['release'])).status).toBe(403)
  expect((await minted(['editor'])).status).toBe(201)
})

test('a key of the feature has the prefix of the gateway and of the feature, and a life', async () => {
  await freeze()
  const key = 'pc:feature:change-freeze:ticket'
  expect(await gateway.redis.direct.get(key)).toBe(FREEZE.ticket)
  expect(await gateway.redis.direct.ttl(key)).toBeGreaterThan(500)
})

test('audit events name the reason, the duration of the stage, the field and the change', async () => {
  await freeze()
  expect(gateway.events.at(-1)?.change).toEqual({
    action: 'change-freeze.begin',
    target: FREEZE.ticket,
  })
  await write()
  expect(gateway.events.at(-1)).toMatchObject({
    decision: 'deny',
    reason: 'change_freeze_active',
    status: 423,
    fields: { 'changeFreeze.ticket': FREEZE.ticket },
    durationsMs: { changeFreeze: expect.any(Number) },
    actor: { subject: 'eve' },
  })
})

test('the metric has all its series from the start, and no explanation is counted', async () => {
  const { text } = await gateway.send('/-/metrics', {
    headers: { authorization: `Bearer ${gateway.operator}` },
  })
  expect(text).toContain('# TYPE change_freeze_writes_total counter')
  for (const outcome of ['passed', 'refused'])
    expect(text).toContain(`change_freeze_writes_total{outcome="${outcome}"} 0`)
})

test('an explanation shows the stage, what it read and why it refused, and changes nothing', async () => {
  await freeze()
  const before = gateway.originCalls()
  const request = { method: 'POST', path: '/notes', caller: { subject: 'eve', roles: ['editor'] } }
  const refused = await gateway.admin('POST', '/explanations', request)
  expect(refused.body).toMatchObject({ status: 423, reason: 'change_freeze_active', origin: null })
  expect(refused.body.stages.at(-1)).toEqual({
    stage: 'changeFreeze',
    outcome: 'refused',
    read: { contact: CONTACT },
    why: expect.stringContaining('Nothing can be changed now.'),
  })
  await gateway.redis.direct.flushall()
  const passed = await gateway.admin('POST', '/explanations', request)
  expect(passed.body.stages).toContainEqual({
    stage: 'changeFreeze',
    outcome: 'passed',
    read: { contact: CONTACT },
    why: 'the API is not frozen',
  })
  expect(gateway.originCalls()).toBe(before)
})

test('the OpenAPI description has the call and the route, with their permission and problems', async () => {
  const { body } = await gateway.send('/-/openapi.json')
  expect(body.paths['/-/admin/change-freeze'].put).toMatchObject({
    operationId: 'beginChangeFreeze',
    description: expect.stringContaining('`portcullis:change-freeze:begin`'),
    tags: ['changeFreeze'],
  })
  expect(body.paths['/-/change-freeze'].get).toMatchObject({
    operationId: 'readChangeFreeze',
    security: [],
  })
})

test('doctor shows the variable and the key, and a wrong value without repeating it', async () => {
  const named = join(ROOT, 'examples/feature/policy.ts')
  const find = async (contact: string) => {
    const values = { SIGNING_KEYS: '{}', CHANGE_FREEZE_CONTACT: contact }
    const findings = await checkFeatures(ROOT, values, values, {}, named)
    return findings.filter(({ check }) => check === 'feature changeFreeze')
  }
  expect(await find(CONTACT)).toMatchObject([
    {
      level: 'ok',
      seen: 'CHANGE_FREEZE_CONTACT is set, keys feature:change-freeze:ticket',
    },
  ])
  const [wrong, ...others] = await find('not-an-address')
  expect(others).toEqual([])
  expect(wrong).toMatchObject({
    level: 'error',
    seen: expect.stringMatching(/^CHANGE_FREEZE_CONTACT: /),
  })
  expect(JSON.stringify(wrong)).not.toContain('not-an-address')
})

test('while Redis fails, the stage admits nothing: 503, and the origin is not called', async () => {
  const before = gateway.originCalls()
  await gateway.redis.direct.hset('pc:feature:change-freeze:ticket', 'a', '1')
  const refused = await write()
  expect(refused.status).toBe(503)
  expect(refused.body.code).toBe('dependency_unavailable')
  expect(gateway.originCalls()).toBe(before)
})
