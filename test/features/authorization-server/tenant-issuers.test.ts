/** Tenants of the same name at two issuers that both sign tokens. */

import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { relations } from '../../../src/features/relations/index.ts'
import {
  ISSUER,
  PUBLIC_URL,
  policyOf,
  REMOTE_ISSUER,
  startGateway,
  type TestGateway,
} from '../operators/gateway.ts'
import { MODEL } from '../operators/relation-model.ts'
import { ACCESS_TOKEN, EXCHANGE } from './gateway.ts'

const GRANTS = [EXCHANGE, 'refresh_token']
const RELATIONS = { model: MODEL, subject: 'user:{subject}' }

/**
 * `isOwn`: whether tenants of `ISSUER` are the gateway's tenants. Tenants of the other issuer never
 * are.
 */
const POLICIES = [
  [
    'relations.issuers names one issuer',
    { relations: relations({ ...RELATIONS, issuers: [ISSUER] }) },
    true,
  ],
  [
    'relations.issuers names no issuer',
    { relations: relations({ ...RELATIONS, issuers: [] }) },
    false,
  ],
  ['tenantIssuers names one issuer', { tenantIssuers: [ISSUER] }, true],
  ['no field names an issuer', {}, false],
  [
    'relations.subject contains the issuer, and no field names one',
    { relations: relations({ ...RELATIONS, subject: 'user:{issuer}|{subject}' }) },
    false,
  ],
] as const

describe.each(POLICIES)(
  'a tenant is identified by issuer and name: %s [S69]',
  (_, changed, isOwn) => {
    let gateway: TestGateway
    beforeAll(async () => {
      gateway = await startGateway({ policy: policyOf(changed) })
    })
    afterAll(() => gateway.close())

    const login = (issuer: string, tenant: string | undefined = 'acme') =>
      gateway.token({ sub: 'alice', roles: ['reader'], tenant }, issuer)

    async function clientOf(tenant: string | undefined, grants = GRANTS) {
      const described = { name: 'x', grants, tenant }
      const { status, body, text } = await gateway.admin('POST', '/clients', described)
      expect(status, text).toBe(201)
      return { client_id: body.clientId, client_secret: body.clientSecret }
    }

    function post(params: Record<string, string>) {
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
      const body = new URLSearchParams(params).toString()
      return gateway.send('/oauth/token', { method: 'POST', headers, body })
    }

    const exchange = (client: Record<string, string>, token: string) =>
      post({
        ...client,
        grant_type: EXCHANGE,
        subject_token: token,
        subject_token_type: ACCESS_TOKEN,
      })

    async function expectRefused(client: Record<string, string>, token: string) {
      const families = async () => (await gateway.redis.direct.keys('pc:*refresh:*')).sort()
      const before = { families: await families(), origin: gateway.originCalls() }
      const reply = await exchange(client, token)
      expect(reply.status, reply.text).toBe(400)
      expect(Object.keys(reply.body)).toEqual(['error', 'error_description'])
      expect(reply.body.error).toBe('invalid_request')
      expect(gateway.events.at(-1)).toMatchObject({
        decision: 'deny',
        reason: 'invalid_request:subject_token_tenant',
      })
      expect({ families: await families(), origin: gateway.originCalls() }).toEqual(before)
    }

    test('a client of a tenant is refused for a token of the same tenant name at another issuer', async () => {
      await expectRefused(await clientOf('acme'), await login(REMOTE_ISSUER))
    })

    test('a client of a tenant is refused for a gateway token that was exchanged for such a token', async () => {
      const broker = await clientOf(undefined, [EXCHANGE])
      const issued = await exchange(broker, await login(REMOTE_ISSUER))
      expect(issued.status, issued.text).toBe(200)
      const token = issued.body.access_token
      expect(decodeJwt(token)).toMatchObject({ sub_iss: REMOTE_ISSUER, tenant: 'acme' })
      await expectRefused(await clientOf('acme'), token)
    })

    test(`a client of a tenant is ${isOwn ? 'served' : 'refused'} for the tenant of the trusted issuer`, async () => {
      const client = await clientOf('acme')
      const token = await login(ISSUER)
      if (!isOwn) return expectRefused(client, token)
      const reply = await exchange(client, token)
      expect(reply.status, reply.text).toBe(200)
      const refreshToken = reply.body.refresh_token
      const again = { ...client, grant_type: 'refresh_token', refresh_token: refreshToken }
      expect((await post(again)).status).toBe(200)
      expect((await gateway.call(reply.body.access_token)).status).toBe(200)
      await expectRefused(client, await login(ISSUER, 'globex'))
    })

    test('a token that the gateway itself signs belongs to its own tenants', async () => {
      const minted = { subject: 'alice', roles: ['reader'], tenant: 'acme' }
      const { token } = (await gateway.admin('POST', '/tokens', minted)).body
      expect((await exchange(await clientOf('acme'), token)).status).toBe(200)
      await expectRefused(await clientOf('globex'), token)
    })

    test('a session that began under another policy ends with the first refresh', async () => {
      const client = await clientOf('acme')
      const laxer = gateway.isolate(policyOf({ tenantIssuers: [REMOTE_ISSUER] }))
      const begun = await laxer.request(`${PUBLIC_URL}/oauth/token`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'CF-Connecting-IP': '192.0.2.1',
        },
        body: new URLSearchParams({
          ...client,
          grant_type: EXCHANGE,
          subject_token_type: ACCESS_TOKEN,
          subject_token: await login(REMOTE_ISSUER),
        }).toString(),
      })
      expect(begun.status).toBe(200)
      const { refresh_token }: { refresh_token: string } = await begun.json()
      const reply = await post({ ...client, grant_type: 'refresh_token', refresh_token })
      expect([reply.status, reply.body.error]).toEqual([400, 'invalid_grant'])
      expect(gateway.events.at(-1)?.reason).toBe('invalid_grant:session_tenant')
    })

    test('a client without a tenant acts for tokens of both issuers', async () => {
      const client = await clientOf(undefined)
      for (const issuer of [ISSUER, REMOTE_ISSUER])
        expect((await exchange(client, await login(issuer))).status).toBe(200)
    })

    test('operators of the tenant at the other issuer cannot manage credentials of the same name', async () => {
      const operator = (issuer: string) =>
        gateway.token({ sub: 'olga', roles: ['operator'], tenant: 'acme' }, issuer)
      const { client_id: id } = await clientOf('acme')
      const key = { name: 'x', subject: 'x', tenant: 'acme' }
      const { id: keyId } = (await gateway.admin('POST', '/api-keys', key)).body
      const calls: readonly (readonly [string, string, object?])[] = [
        ['POST', `/clients/${id}/secret`],
        ['POST', `/api-keys/${keyId}/secret`],
        ['POST', '/clients', { name: 'y', grants: GRANTS }],
        ['POST', '/tokens', { subject: 'y' }],
        ['POST', '/api-keys', { name: 'y', subject: 'y' }],
        ['POST', '/revocations', { kind: 'tenant', value: 'acme', issuer: REMOTE_ISSUER }],
        ['POST', '/limits/reset', { limit: 'shared', value: 'acme', issuer: REMOTE_ISSUER }],
        ['DELETE', `/clients/${id}`],
        ['DELETE', `/api-keys/${keyId}`],
      ]
      for (const [method, path, body] of calls) {
        const as = await operator(REMOTE_ISSUER)
        const reply = await gateway.admin(method, path, body, { as })
        expect(reply.status, `${method} ${path} ${reply.text}`).toBe(403)
        expect(gateway.events.at(-1)?.change).toBeUndefined()
      }
      if ('relations' in changed) {
        const tuple = { object: 'order:7', relation: 'viewer', subject: 'user:alice' }
        const as = await operator(REMOTE_ISSUER)
        for (const [path, body] of [
          ['/relations', { writes: [tuple] }],
          ['/check', tuple],
        ] as const)
          expect((await gateway.admin('POST', path, body, { as })).status).toBe(403)
      }
      const as = await operator(ISSUER)
      const own = await gateway.admin('POST', `/clients/${id}/secret`, undefined, { as })
      expect(own.status, own.text).toBe(isOwn ? 200 : 403)
    })
  },
)

test('a policy that names the issuers of tenants twice is refused', () => {
  const twice = { relations: relations({ ...RELATIONS, issuers: [] }), tenantIssuers: [] }
  expect(() => policyOf(twice)).toThrow(/tenantIssuers: cannot be combined with relations.issuers/)
})

describe('with one trusted issuer and no field that names it [S69]', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway({ policy: policyOf({}), issuers: [ISSUER] })
  })
  afterAll(() => gateway.close())

  test("its tenants are the gateway's tenants", async () => {
    const client = (
      await gateway.admin('POST', '/clients', { name: 'x', grants: GRANTS, tenant: 'acme' })
    ).body
    const body = new URLSearchParams({
      client_id: client.clientId,
      client_secret: client.clientSecret,
      grant_type: EXCHANGE,
      subject_token_type: ACCESS_TOKEN,
      subject_token: await gateway.token({ sub: 'alice', tenant: 'acme' }, ISSUER),
    }).toString()
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const reply = await gateway.send('/oauth/token', { method: 'POST', headers, body })
    expect(reply.status, reply.text).toBe(200)
    expect(decodeJwt(reply.body.access_token)).toMatchObject({ iss: PUBLIC_URL, tenant: 'acme' })
  })
})
