/**
 * Attacks by an operator of one tenant on other tenants, and on the revocation of their own access.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { principalOfGrant } from '../../../src/access/tokens/access-grant.ts'
import { createGrantStore } from '../../../src/features/authorization-server/redis/grant-store.ts'
import { issuableSecond } from '../../../src/features/operators/grant.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { namesInLanes } from '../../harness/lanes.ts'
import { slowly } from '../../harness/slow-body.ts'
import { ISSUER, PUBLIC_URL, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

/** Node requires it for a stream as the body. Types of Workers do not have it. */
const HALF_DUPLEX = { duplex: 'half' }

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const operatorOf = (tenant: string | undefined, issuer = ISSUER, claims = {}) =>
  gateway.token({ sub: 'olga', roles: ['operator'], tenant, ...claims }, issuer)
/** After a revocation in this second, which covers the tenant's own operators too. */
const later = () => ({ iat: Math.floor(Date.now() / 1000) + 3 })

describe("a tenant of the same name, of an issuer that is not the operator's [S64]", () => {
  const CALLS = [
    ['/limits/overrides', { limit: 'shared', value: 'initech', requests: 1 }],
    ['/limits/reset', { limit: 'shared', value: 'initech' }],
    ['/revocations', { kind: 'tenant', value: 'initech' }],
  ] as const
  const windowOf = (issuer: string) =>
    `pc:limit:shared:tenant:${encodeURIComponent(issuer)}:initech`

  test.each(CALLS)('is not reached by naming the issuer: POST %s', async (path, body) => {
    const as = await operatorOf('initech')
    await gateway.expectRefused('POST', path, { ...body, issuer: REMOTE_ISSUER }, as)
  })

  test.each(CALLS)('is not reached by naming no issuer: POST %s', async (path, body) => {
    const direct = gateway.redis.direct
    for (const name of [ISSUER, REMOTE_ISSUER].flatMap((issuer) => namesInLanes(windowOf(issuer))))
      await direct.set(name, 'counted')
    const touched = async () => {
      const lines = (await gateway.state()).split('\n').filter((line) => line.includes('initech'))
      return (issuer: string) => lines.filter((line) => line.includes(encodeURIComponent(issuer)))
    }
    const was = await touched()
    const as = await operatorOf('initech', ISSUER, later())
    const reply = await gateway.admin('POST', path, body, { as })
    expect([201, 204], reply.text).toContain(reply.status)
    const is = await touched()
    expect(is(REMOTE_ISSUER)).toEqual(was(REMOTE_ISSUER))
    expect(is(ISSUER)).not.toEqual(was(ISSUER))
    if (reply.status === 204) return
    const own = await operatorOf('initech', ISSUER, later())
    const deletion = await gateway.admin('DELETE', `${path}/${reply.body.id}`, undefined, {
      as: own,
    })
    expect(deletion.status).toBe(204)
  })

  test.each(CALLS.filter(([path]) => path !== '/limits/reset'))(
    'keeps entries for all issuers and for its own: DELETE %s',
    async (path, body) => {
      for (const issuer of [undefined, REMOTE_ISSUER]) {
        const { id } = (await gateway.admin('POST', path, { ...body, issuer })).body
        const as = await operatorOf('initech', ISSUER, later())
        const before = await gateway.state()
        const refused = await gateway.admin('DELETE', `${path}/${id}`, undefined, { as })
        // What concerns the tenant too is visible, and belongs to the platform.
        expect(refused.status).toBe(issuer === undefined ? 403 : 404)
        expect(await gateway.state()).toBe(before)
        expect((await gateway.admin('DELETE', `${path}/${id}`)).status).toBe(204)
      }
    },
  )
})

describe('an operator who is revoked while the body of a call is being sent [S30]', () => {
  const tuple = { object: 'order:7', relation: 'viewer', subject: 'user:mallory' }
  const CALLS: readonly (readonly [method: string, path: string, body: object | undefined])[] = [
    ['POST', '/tokens', { subject: 'x', roles: ['operator'] }],
    ['POST', '/tokens', { subject: 'x', format: 'opaque' }],
    ['POST', '/api-keys', { name: 'x', subject: 'x' }],
    ['POST', '/api-keys/:key/secret', {}],
    ['PATCH', '/api-keys/:key', { name: 'x' }],
    ['POST', '/clients', { name: 'x', grants: ['client_credentials'] }],
    ['POST', '/clients/:client/secret', { graceSeconds: 3_600 }],
    ['POST', '/relations', { writes: [tuple] }],
    ['POST', '/limits/overrides', { limit: 'few', value: 'mallory', requests: 1_000 }],
    ['POST', '/limits/reset', { limit: 'few', value: 'mallory' }],
    ['POST', '/bans', { kind: 'subject', value: 'alice', seconds: 3_600 }],
    ['POST', '/revocations', { kind: 'subject', value: 'alice' }],
    ['DELETE', '/api-keys/:key', undefined],
    ['DELETE', '/clients/:client', undefined],
  ]
  let tenants = 0

  test.each(CALLS)('changes nothing: %s %s %j', async (method, path, body) => {
    const tenant = `wayne-${++tenants}`
    const as = await operatorOf(tenant)
    const made = {
      key: (await gateway.admin('POST', '/api-keys', { name: 'k', subject: 'k' }, { as })).body.id,
      client: (
        await gateway.admin(
          'POST',
          '/clients',
          { name: 'c', grants: ['client_credentials'] },
          { as },
        )
      ).body.clientId,
    }
    const target = path.replace(':key', made.key).replace(':client', made.client)
    const { stream, pulled, end } = slowly(body)
    const pending = gateway.send(`/-/admin${target}`, {
      method,
      headers: { Authorization: `Bearer ${as}`, 'Content-Type': 'application/json' },
      body: stream,
      ...HALF_DUPLEX,
    })
    await pulled
    const revocation = { kind: 'tenant', value: tenant }
    expect((await gateway.admin('POST', '/revocations', revocation)).status).toBe(201)
    const before = await gateway.state()
    end()
    const reply = await pending
    expect(reply.status, reply.text).toBe(401)
    expect(await gateway.state()).toBe(before)
    const event = gateway.events.at(-1)
    expect(event?.reason).toBe('token_revoked:tenant')
    expect(event?.change).toBeUndefined()
  })

  test.each<[string, object]>([
    ['/check', tuple],
    ['/expand', { object: tuple.object, relation: tuple.relation }],
  ])('learns nothing after a slow body: POST %s', async (path, body) => {
    const tenant = `wayne-${++tenants}`
    const as = await operatorOf(tenant)
    const { stream, pulled, end } = slowly(body)
    const pending = gateway.send(`/-/admin${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${as}`, 'Content-Type': 'application/json' },
      body: stream,
      ...HALF_DUPLEX,
    })
    await pulled
    await gateway.admin('POST', '/revocations', { kind: 'tenant', value: tenant })
    // Longer than an admission is valid.
    await new Promise((done) => setTimeout(done, 1_100))
    end()
    const reply = await pending
    expect(reply.status, reply.text).toBe(401)
    expect(gateway.events.at(-1)?.reason).toBe('token_revoked:tenant')
  })

  test('changes nothing if banned instead of revoked', async () => {
    const as = await operatorOf(undefined, ISSUER, { sub: 'bruce' })
    const { stream, pulled, end } = slowly({ name: 'x', subject: 'x' })
    const pending = gateway.send('/-/admin/api-keys', {
      method: 'POST',
      headers: { Authorization: `Bearer ${as}`, 'Content-Type': 'application/json' },
      body: stream,
      ...HALF_DUPLEX,
    })
    await pulled
    const ban = { kind: 'subject', issuer: ISSUER, value: 'bruce', seconds: 3_600 }
    expect((await gateway.admin('POST', '/bans', ban)).status).toBe(201)
    const before = await gateway.state()
    end()
    expect((await pending).status).toBe(403)
    expect(await gateway.state()).toBe(before)
  })
})

describe.each(['globex', undefined])('the name of a client of tenant %s [S64]', (tenant) => {
  test('cannot be used in credentials that an operator of another tenant creates', async () => {
    const acme = await operatorOf('acme')
    const described = { name: 'x', grants: ['client_credentials'] }
    const { clientId } = (await gateway.admin('POST', '/clients', { ...described, tenant })).body
    const own = (await gateway.admin('POST', '/clients', described, { as: acme })).body.clientId
    const handOut = (id: string): readonly (readonly [path: string, body: object])[] => [
      ['/tokens', { subject: id }],
      ['/tokens', { subject: 'x', client: id }],
      ['/tokens', { subject: id, client: id, format: 'opaque' }],
      ['/api-keys', { name: 'x', subject: id }],
    ]
    for (const [path, body] of handOut(clientId))
      await gateway.expectRefused('POST', path, body, acme)
    for (const [path, body] of [...handOut(own), ...handOut(crypto.randomUUID())])
      expect((await gateway.admin('POST', path, body, { as: acme })).status).toBe(201)
    for (const [path, body] of handOut(clientId))
      expect((await gateway.admin('POST', path, body)).status).toBe(201)
  })
})

test('disabling a client is audited even if its tokens could not be revoked [S66]', async () => {
  const described = { name: 'x', grants: ['client_credentials'] }
  const { clientId } = (await gateway.admin('POST', '/clients', described)).body
  const revokeBefore = await revokedBeforeKey(DEFAULT_KEYS, 'client', PUBLIC_URL, clientId)
  await gateway.redis.direct.rpush(revokeBefore, 'no second')
  expect((await gateway.admin('DELETE', `/clients/${clientId}`)).status).toBe(503)
  const change = { action: 'client.disable', target: clientId }
  expect(gateway.events.at(-1)).toMatchObject({ status: 503, change })
  await gateway.redis.direct.del(revokeBefore)
  expect((await gateway.admin('DELETE', `/clients/${clientId}`)).status).toBe(204)
  expect(gateway.events.at(-1)).toMatchObject({ status: 204, change })
})

test('no token is issued for a second after the cutoff of its operator [S30]', async () => {
  const { url, token } = gateway.redis
  const revocationFacts = createGrantStore(createRedisRest({ url, token, timeoutMs: 20_000 }))
  const grant = { subject: 'olga', client: 'c', tenant: 'stark', roles: [], scopes: [] }
  const bearer = principalOfGrant({ ...grant, audiences: [] }, ISSUER)
  const principal = { ...bearer, issuedAtSeconds: Math.floor(Date.now() / 1000) }
  const bounds = { revocationFacts, publicUrl: PUBLIC_URL, now: Date.now }
  const issued = () => issuableSecond(principal, { subject: 'x', tenant: 'stark' }, bounds)
  expect(await issued()).toBeGreaterThanOrEqual(principal.issuedAtSeconds)
  await gateway.admin('POST', '/revocations', { kind: 'tenant', value: 'stark' })
  await expect(issued()).rejects.toMatchObject({ denial: { code: 'token_revoked', by: 'tenant' } })
})
