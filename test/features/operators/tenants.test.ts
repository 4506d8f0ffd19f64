import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER, PUBLIC_URL, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const operatorOf = (tenant: string | undefined, issuer = ISSUER, claims = {}) =>
  gateway.token({ sub: 'olga', roles: ['operator'], tenant, ...claims }, issuer)

const client = { name: 'x', grants: ['client_credentials'] }
const key = { name: 'x', subject: 'x' }
const MADE = [
  ['/tokens', { subject: 'x' }],
  ['/tokens', { subject: 'x', format: 'opaque' }],
  ['/api-keys', key],
  ['/clients', client],
] as const
const NAMED = [
  ['/limits/overrides', { limit: 'shared', value: 'globex', requests: 1_000 }],
  ['/limits/reset', { limit: 'shared', value: 'globex' }],
  ['/revocations', { kind: 'tenant', value: 'globex' }],
] as const

describe.each(MADE)('POST %s %j by an operator with a tenant [S64]', (path, body) => {
  test('creates nothing for another tenant', async () => {
    const acme = await operatorOf('acme')
    for (const tenant of ['globex', 'Acme', 'acme.', PUBLIC_URL])
      await gateway.expectRefused('POST', path, { ...body, tenant }, acme)
  })

  test("creates it for the operator's own tenant, named or not", async () => {
    const as = await operatorOf('acme')
    for (const named of [{}, { tenant: 'acme' }]) {
      const reply = await gateway.admin('POST', path, { ...body, ...named }, { as })
      expect(reply.status, reply.text).toBe(201)
      expect(await tenantOf(reply.body)).toBe('acme')
    }
  })

  test('creates nothing for an issuer if the policy does not manage its tenants', async () => {
    const stranger = await operatorOf('acme', REMOTE_ISSUER)
    await gateway.expectRefused('POST', path, body, stranger)
    await gateway.expectRefused('POST', path, { ...body, tenant: 'acme' }, stranger)
  })

  test('creates it for any tenant or none if the operator has no tenant', async () => {
    for (const named of [{}, { tenant: 'globex' }]) {
      const reply = await gateway.admin('POST', path, { ...body, ...named })
      expect(reply.status, reply.text).toBe(201)
      expect(await tenantOf(reply.body)).toBe('tenant' in named ? named.tenant : undefined)
    }
  })
})

test('a credential created by an operator with a tenant has the same restrictions [S64]', async () => {
  const as = await operatorOf('acme')
  const granted = { subject: 'x', roles: ['operator'] }
  const { token } = (await gateway.admin('POST', '/tokens', granted, { as })).body
  await gateway.expectRefused('POST', '/tokens', { ...granted, tenant: 'globex' }, token)
  await gateway.expectRefused('POST', '/revocations', { kind: 'tenant', value: 'globex' }, token)
})

test('a refused role names the roles of the policy only to an operator without a tenant [S64]', async () => {
  const messageTo = async (as: string, role: string) => {
    const reply = await gateway.admin('POST', '/api-keys', { ...key, roles: [role] }, { as })
    expect(reply.status).toBe(422)
    return reply.body.errors?.[0]?.message
  }
  const platform = await operatorOf(undefined)
  const acme = await operatorOf('acme')
  expect(await messageTo(platform, 'operater')).toContain('did you mean "operator"?')
  expect(await messageTo(platform, 'xyz')).toMatch(/; the roles are .*operator/)
  for (const role of ['operater', 'xyz'])
    expect(await messageTo(acme, role)).toBe('must be a role of the policy')
})

describe.each(['globex', undefined])('a credential of tenant %s [S64]', (tenant) => {
  test('cannot be rotated or revoked by an operator of another tenant', async () => {
    const acme = await operatorOf('acme')
    const ofTenant = tenant === undefined ? {} : { tenant }
    const made = {
      'api-keys': (await gateway.admin('POST', '/api-keys', { ...key, ...ofTenant })).body.id,
      clients: (await gateway.admin('POST', '/clients', { ...client, ...ofTenant })).body.clientId,
    }
    for (const [kind, id] of Object.entries(made)) {
      for (const [method, path] of [
        ['POST', `/${kind}/${id}/secret`],
        ['DELETE', `/${kind}/${id}`],
      ] as const)
        expect((await gateway.admin(method, path, undefined, { as: acme })).status).toBe(404)
      expect((await gateway.admin('POST', `/${kind}/${id}/secret`)).status).toBe(200)
      expect((await gateway.admin('DELETE', `/${kind}/${id}`)).status).toBe(204)
    }
  })
})

test('a credential of the own tenant can be rotated and revoked; an unknown one is 404', async () => {
  const as = await operatorOf('acme')
  const made = {
    'api-keys': (await gateway.admin('POST', '/api-keys', key, { as })).body.id,
    clients: (await gateway.admin('POST', '/clients', client, { as })).body.clientId,
  }
  for (const [kind, id] of Object.entries(made)) {
    const secret = await gateway.admin('POST', `/${kind}/${id}/secret`, undefined, { as })
    expect(secret.status, secret.text).toBe(200)
    expect((await gateway.admin('DELETE', `/${kind}/${id}`, undefined, { as })).status).toBe(204)
    const unknown = `/${kind}/01900000-0000-7000-8000-000000000000`
    expect((await gateway.admin('DELETE', unknown, undefined, { as })).status).toBe(404)
  }
})

test('a call that names a tenant requires an operator of that tenant, or of none [S64]', async () => {
  // Minted when needed, after this second: a revocation of the tenant covers its own operators too.
  const later = () => ({ iat: Math.floor(Date.now() / 1000) + 3 })
  const others = [
    () => operatorOf('acme'),
    () => operatorOf('globex', REMOTE_ISSUER, later()),
  ] as const
  const refused = async (method: string, path: string, body?: object) => {
    for (const other of others) await gateway.expectRefused(method, path, body, await other())
  }
  const rightful = [() => operatorOf('globex', ISSUER, later()), async () => gateway.operator]
  for (const [path, body] of NAMED) {
    await refused('POST', path, body)
    for (const operator of rightful) {
      const reply = await gateway.admin('POST', path, body, { as: await operator() })
      expect([201, 204], reply.text).toContain(reply.status)
      if (reply.status === 204) continue
      const made = `${path}/${reply.body.id}`
      for (const [other, status] of [
        [others[0], 404],
        [others[1], 403],
      ] as const)
        expect((await gateway.admin('DELETE', made, undefined, { as: await other() })).status).toBe(
          status,
        )
      for (const status of [204, 404]) {
        const deletion = await gateway.admin('DELETE', made, undefined, { as: await operator() })
        expect(deletion.status, deletion.text).toBe(status)
      }
    }
  }
})

test('an operator with a tenant sees the API keys of its tenant, and no others [S64]', async () => {
  const subject = crypto.randomUUID()
  for (const tenant of ['acme', 'globex', undefined]) {
    const body = { name: 'x', subject, ...(tenant && { tenant }) }
    expect((await gateway.admin('POST', '/api-keys', body)).status).toBe(201)
  }
  const tenantsFor = async (query: string, as?: string) => {
    const path = `/api-keys?subject=${subject}${query}`
    const { body } = await gateway.admin('GET', path, undefined, as === undefined ? {} : { as })
    return body.apiKeys.map(({ tenant }: { tenant: string | null }) => tenant)
  }
  const acme = await operatorOf('acme')
  expect(await tenantsFor('', acme)).toEqual(['acme'])
  expect(await tenantsFor('&tenant=acme', acme)).toEqual(['acme'])
  expect(await tenantsFor('')).toEqual([null, 'globex', 'acme'])
  expect(await tenantsFor('&tenant=globex')).toEqual(['globex'])
  await gateway.expectRefused('GET', '/api-keys?tenant=globex', undefined, acme)
  const stranger = await operatorOf('acme', REMOTE_ISSUER)
  await gateway.expectRefused('GET', '/api-keys', undefined, stranger)
})

test('an operator with a tenant names subjects as members of its tenant [S88]', async () => {
  const as = await operatorOf('acme')
  const revocation = { kind: 'subject', value: 'globex' }
  const override = { limit: 'few', value: 'globex', requests: 1_000 }
  for (const [path, body] of [
    ['/revocations', revocation],
    ['/limits/overrides', override],
  ] as const) {
    const { id, ...made } = (await gateway.admin('POST', path, body, { as })).body
    expect(made).toMatchObject({ tenant: 'acme', owner: 'tenant' })
    expect((await gateway.admin('DELETE', `${path}/${id}`, undefined, { as })).status).toBe(204)
  }
})

/** Returns the tenant of a created credential as the gateway reads it. */
async function tenantOf(made: Record<string, string>): Promise<unknown> {
  if (made.apiKey !== undefined || made.clientId !== undefined) return made.tenant ?? undefined
  if (made.token?.startsWith('ey')) return decodeJwt(made.token).tenant
  await gateway.call(made.token ?? '')
  return gateway.events.at(-1)?.actor.tenant ?? undefined
}
