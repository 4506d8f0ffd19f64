import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPERATOR_PERMISSIONS } from '../../../src/routes/admin/permissions.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

/** Returns a token for an operator with exactly these permissions, granted by scope alone. */
const operatorOf = (...permissions: string[]) =>
  gateway.token({ sub: 'less', roles: [], scope: permissions.join(' ') })
const OWN = { name: 'x', grants: ['client_credentials'] }

const HANDED_OUT = [
  ['POST', '/tokens', 'portcullis:tokens:mint', { subject: 'x' }],
  ['POST', '/api-keys', 'portcullis:api-keys:create', { name: 'x', subject: 'x' }],
  ['POST', '/clients', 'portcullis:clients:create', OWN],
] as const

test('every permission is unique, and no more permissions than calls exist', () => {
  const calls = gateway.isolate().routes.filter(({ path }) => path.startsWith('/-/admin/'))
  expect(new Set(OPERATOR_PERMISSIONS).size).toBe(OPERATOR_PERMISSIONS.length)
  expect(calls.length).toBeGreaterThanOrEqual(OPERATOR_PERMISSIONS.length)
})

describe.each(HANDED_OUT)('%s %s [S64]', (method, path, permission, body) => {
  test.each([
    { roles: ['operator'] },
    { roles: ['reader', 'auditor'] },
    { scopes: ['portcullis:*'] },
    { roles: ['auditor'], scopes: ['portcullis:*'] },
    { scopes: ['portcullis:bans:*'] },
    { roles: ['operator'], scopes: ['openid'] },
    { roles: ['operator'], scopes: ['portcullis:audit:read'] },
  ])('refuses to grant permissions that the caller lacks: %j', async (granted) => {
    const as = await operatorOf(permission)
    await gateway.expectRefused(method, path, { ...body, ...granted }, as)
  })

  test.each([
    { roles: ['reader'] },
    { roles: ['reader'], scopes: ['orders:read'] },
    { roles: ['operator'], scopes: ['orders:read'] },
    { roles: ['unknown', 'constructor'] },
    {},
  ])('grants permissions that do not concern the gateway: %j', async (granted) => {
    const as = await operatorOf(permission)
    const reply = await gateway.admin(method, path, { ...body, ...granted }, { as })
    // An origin may know other roles of tokens. An API key with one is usually a mistake.
    const isMistake = path === '/api-keys' && granted.roles?.includes('unknown') === true
    expect(reply.status, reply.text).toBe(isMistake ? 422 : 201)
  })

  test('grants as many permissions as the caller has', async () => {
    const as = await operatorOf(permission, 'portcullis:audit:*', 'portcullis:revocations:list')
    const granted = { ...body, roles: ['auditor'] }
    expect((await gateway.admin(method, path, granted, { as })).status).toBe(201)
  })
})

test('an operator cannot rotate the secret of a credential with more permissions [S64]', async () => {
  const client = (await gateway.admin('POST', '/clients', { ...OWN, roles: ['operator'] })).body
  const described = { name: 'x', subject: 'x', roles: ['operator'] }
  const key = (await gateway.admin('POST', '/api-keys', described)).body
  const as = await operatorOf('portcullis:clients:*', 'portcullis:api-keys:*')
  for (const path of [`/clients/${client.clientId}/secret`, `/api-keys/${key.id}/secret`]) {
    const before = await gateway.state()
    const reply = await gateway.admin('POST', path, undefined, { as })
    expect(reply.status, reply.text).toBe(403)
    expect(await gateway.state()).toBe(before)
    expect((await gateway.admin('POST', path)).status).toBe(200)
  }
})

test('a client with only user grants may have any scope, because it gets no token of its own', async () => {
  const grants = ['urn:ietf:params:oauth:grant-type:token-exchange']
  const as = await operatorOf('portcullis:clients:create')
  const body = { name: 'x', grants, scopes: ['portcullis:*'] }
  expect((await gateway.admin('POST', '/clients', body, { as })).status).toBe(201)
})

describe('a credential issued right after a cutoff is accepted [S33]', () => {
  const revoke = (kind: string, value: string) =>
    gateway.admin('POST', '/revocations', { kind, value, issuer: PUBLIC_URL })

  test.each(['subject', 'tenant'])('when the cutoff is for its %s', async (kind) => {
    const owner = { subject: `${kind}-s`, tenant: `${kind}-t`, roles: ['reader'] }
    const earlier = (await gateway.admin('POST', '/api-keys', { name: 'x', ...owner })).body
    await revoke(kind, kind === 'subject' ? owner.subject : owner.tenant)
    expect((await gateway.call(earlier.apiKey)).status).toBe(401)
    const key = (await gateway.admin('POST', '/api-keys', { name: 'x', ...owner })).body
    const { token } = (await gateway.admin('POST', '/tokens', owner)).body
    const opaque = (await gateway.admin('POST', '/tokens', { ...owner, format: 'opaque' })).body
    const rotated = (await gateway.admin('POST', `/api-keys/${earlier.id}/secret`)).body
    for (const credential of [key.apiKey, token, opaque.token, rotated.apiKey]) {
      expect((await gateway.call(credential, 0)).status).toBe(200)
      expect((await gateway.call(credential, 1)).status).toBe(200)
    }
  })

  test('but a disabled client gets no token', async () => {
    const { clientId } = (await gateway.admin('POST', '/clients', OWN)).body
    await gateway.admin('DELETE', `/clients/${clientId}`)
    const calls = { subject: 'x', roles: ['reader'], client: clientId }
    const reply = await gateway.admin('POST', '/tokens', calls)
    expect(reply.status, reply.text).toBe(422)
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  })
})

describe('a client name or claim that a token cannot carry is refused [S17]', () => {
  test.each([
    { name: 'a\u001b[2Jb' },
    { name: 'a\nb' },
    { tenant: 'a\r\nX-Auth-Roles: admin' },
    { tenant: 'a\u0000' },
    { tenant: ' padded' },
    { roles: ['a\nb'] },
    { roles: ['padded '] },
    { audiences: ['https://a.example\n'] },
    { tokenAlgorithm: 'RS256' },
  ])('refused: %j', async (members) => {
    const before = await gateway.state()
    const reply = await gateway.admin('POST', '/clients', { ...OWN, ...members })
    expect(reply.status, reply.text).toBe(422)
    expect(await gateway.state()).toBe(before)
  })

  test('a lone surrogate is refused', async () => {
    const body = JSON.stringify({ ...OWN, tenant: 'T' }).replace('"T"', String.raw`"\ud800"`)
    expect((await gateway.admin('POST', '/clients', body)).status).toBeGreaterThanOrEqual(400)
    expect((await gateway.admin('POST', '/clients', body)).status).toBeLessThan(500)
  })
})

test('a stored client with a tenant that is invalid today does not break the list [R06]', async () => {
  const { clientId } = (await gateway.admin('POST', '/clients', OWN)).body
  const key = `pc:client:${clientId}`
  const record = JSON.parse(String(await gateway.redis.direct.get(key)))
  await gateway.redis.direct.set(key, JSON.stringify({ ...record, tenant: 'a\nb' }))
  const { status, body } = await gateway.admin('GET', '/clients?limit=200')
  expect(status).toBe(200)
  expect(body.clients.length).toBeGreaterThan(1)
  expect((await gateway.admin('DELETE', `/clients/${clientId}`)).status).toBe(204)
})
