/** Explanations of the running gateway: true to its state, and without any change of it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ISSUER, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const explained = (body: object, options?: Parameters<TestGateway['admin']>[3]) =>
  gateway.admin('POST', '/explanations', body, options)
const reader = () => ({ subject: crypto.randomUUID(), roles: ['reader'] })
const lastOf = (reply: { readonly body: { readonly stages: readonly object[] } }) =>
  reply.body.stages.at(-1)

test('changes nothing in Redis, calls no origin, and records only the call of the operator', async () => {
  const token = await gateway.token({ sub: crypto.randomUUID(), roles: ['reader'] })
  const before = await gateway.state()
  const calls = gateway.originCalls()
  const events = gateway.events.length
  const requests = [
    { method: 'GET', path: '/few', token },
    { method: 'GET', path: '/few', caller: reader() },
    { method: 'GET', path: '/public' },
    { method: 'GET', path: '/few', token: `${token}x` },
  ]
  const statuses = []
  for (const request of requests) statuses.push((await explained(request)).body.status)
  expect(statuses).toEqual([200, 200, 200, 401])
  expect(await gateway.state()).toBe(before)
  expect(gateway.originCalls()).toBe(calls)
  const recorded = gateway.events.slice(events).map(({ route, decision }) => `${route} ${decision}`)
  expect(recorded).toEqual(requests.map(() => '/-/admin/explanations allow'))
})

test('reports what is left of a limit, and the refusal once the limit is used up', async () => {
  const sub = crypto.randomUUID()
  const token = await gateway.token({ sub, roles: ['reader'] })
  const admitOf = async () => {
    const { body } = await explained({ method: 'GET', path: '/few', token })
    return body.stages.find(({ stage }: { stage: string }) => stage === 'admit')
  }
  expect((await admitOf()).read.limits).toEqual([{ name: 'few', limit: 2, remaining: 2 }])
  await gateway.call(token, 0, '/few')
  expect((await admitOf()).read.limits).toEqual([{ name: 'few', limit: 2, remaining: 1 }])
  await gateway.call(token, 1, '/few')
  expect(await admitOf()).toMatchObject({
    outcome: 'refused',
    why: expect.stringContaining('the limit few is used up'),
  })
  const assumed = { subject: sub, issuer: ISSUER, roles: ['reader'] }
  const byName = await explained({ method: 'GET', path: '/few', caller: assumed })
  expect(byName.body).toMatchObject({ status: 429, reason: 'rate_limited:few' })
})

test('names the revocation of a token, and the ban of a subject', async () => {
  const token = await gateway.token({ sub: crypto.randomUUID(), roles: ['reader'] })
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  await gateway.admin('POST', '/revocations', { kind: 'token', value: jti })
  const revoked = await explained({ method: 'GET', path: '/orders', token })
  expect(revoked.body).toMatchObject({ decision: 'deny', reason: 'token_revoked:token' })
  expect(lastOf(revoked)).toMatchObject({ stage: 'admit', outcome: 'refused' })
  const caller = { ...reader(), issuer: ISSUER }
  await gateway.admin('POST', '/bans', { kind: 'subject', value: caller.subject, seconds: 60 })
  const banned = await explained({ method: 'GET', path: '/orders', caller })
  expect(banned.body).toMatchObject({ reason: 'banned:subject', status: 403 })
})

test('says until when earlier credentials of an assumed caller are revoked, of that caller alone', async () => {
  const [subject, tenant] = [crypto.randomUUID(), crypto.randomUUID()]
  const caller = { ...reader(), issuer: ISSUER, subject, tenant }
  const request = { method: 'GET', path: '/orders' }
  const revokedBefore = async (body: object) => (await explained(body)).body.revokedBefore
  expect(await revokedBefore({ ...request, caller })).toEqual([])
  const order = async (body: object) => (await gateway.admin('POST', '/revocations', body)).body
  const ofTenant = await order({ kind: 'tenant', value: tenant, issuer: ISSUER })
  const ofSubject = await order({ kind: 'subject', value: subject, issuer: ISSUER })
  const both = [
    { kind: 'tenant', until: ofTenant.createdAt },
    { kind: 'subject', until: ofSubject.createdAt },
  ]
  expect(await revokedBefore({ ...request, caller })).toEqual(both)
  for (const other of [{ issuer: REMOTE_ISSUER }, { subject: 'someone', tenant: undefined }])
    expect(await revokedBefore({ ...request, caller: { ...caller, ...other } })).toEqual([])
  const withinTenant = await order({ kind: 'subject', value: subject, tenant, issuer: ISSUER })
  expect(await revokedBefore({ ...request, caller })).toEqual([
    ...both,
    { kind: 'subject', until: withinTenant.createdAt },
  ])
  // The token of a request is checked itself.
  const iat = Math.floor(Date.now() / 1_000) + 3
  const token = await gateway.token({ sub: subject, tenant, roles: ['reader'], iat })
  expect(await revokedBefore({ ...request, token })).toEqual([])
})

test('resolves an API key without its use', async () => {
  const created = await gateway.admin('POST', '/api-keys', {
    name: 'x',
    subject: crypto.randomUUID(),
    roles: ['reader'],
  })
  const before = await gateway.state()
  const { body, text } = await explained({
    method: 'GET',
    path: '/few',
    token: created.body.apiKey,
  })
  expect(body).toMatchObject({ decision: 'allow', status: 200 })
  expect(text).not.toContain(created.body.apiKey)
  expect(await gateway.state()).toBe(before)
})

test('contains no token, and no assertion that the origin would accept', async () => {
  const token = await gateway.token({ sub: crypto.randomUUID(), roles: ['reader'] })
  const { text, body } = await explained({ method: 'GET', path: '/orders', token })
  expect(text).not.toContain(token)
  expect(body.origin.headers['x-auth-assertion']).toBe('(present, not shown)')
})

test('refuses what is no request of the policy, and two callers at once', async () => {
  for (const path of ['/-/admin/clients', '/-/healthz', '/-/nothing'])
    expect((await explained({ method: 'GET', path })).status).toBe(422)
  expect((await explained({ method: 'GET', path: '/.well-known/jwks.json' })).status).toBe(404)
  const both = { method: 'GET', path: '/orders', caller: reader(), token: 'a.b.c' }
  expect((await explained(both)).status).toBe(422)
  for (const wrong of [
    { method: 'GET', path: '/orders', body: 'x' },
    { method: 'TRACE', path: '/orders' },
    { method: 'GET', path: '/orders', headers: { 'a b': 'x' } },
    { method: 'GET', path: '/orders', address: 'here' },
    { method: 'GET', path: '/orders', caller: { ...reader(), issuer: 'https://unknown.test' } },
  ])
    expect((await explained(wrong)).status, JSON.stringify(wrong)).toBe(422)
})

test('an operator with a tenant gets explanations about callers of its tenant alone [S88]', async () => {
  const as = await gateway.token({ sub: 'tom', roles: ['operator'], tenant: 'acme' })
  const request = { method: 'GET', path: '/orders' }
  const own = await explained({ ...request, caller: reader() }, { as })
  expect(own.body.decision).toBe('allow')
  const authenticated = own.body.stages.find(
    ({ stage }: { stage: string }) => stage === 'authenticate',
  )
  expect(authenticated.read.tenant).toBe('acme')
  // The limits of a client of others, or of no client, would show their requests.
  const byClient = { ...request, caller: { ...reader(), client: crypto.randomUUID() } }
  expect((await gateway.admin('POST', '/explanations', byClient, { as })).status).toBe(404)
  for (const body of [{ ...request, caller: { ...reader(), tenant: 'globex' } }, request])
    await gateway.expectRefused('POST', '/explanations', body, as)
})
