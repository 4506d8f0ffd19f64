import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { startGateway, type TestGateway } from './gateway.ts'

const ID = '0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'
/** Every call with valid input, and the permission that it requires. */
const CALLS: readonly (readonly [string, string, string, object?])[] = [
  ['POST', '/clients', 'clients:create', { name: 'x', grants: ['client_credentials'] }],
  ['GET', '/clients', 'clients:list'],
  ['GET', `/clients/${ID}`, 'clients:list'],
  ['POST', `/clients/${ID}/secret`, 'clients:rotate', {}],
  ['DELETE', `/clients/${ID}`, 'clients:disable'],
  ['POST', '/api-keys', 'api-keys:create', { name: 'x', subject: 'x' }],
  ['GET', '/api-keys', 'api-keys:list'],
  ['POST', '/api-key-lookups', 'api-keys:list', { apiKey: newApiKey() }],
  ['GET', `/api-keys/${ID}`, 'api-keys:list'],
  ['GET', `/api-keys/${ID}/usage`, 'api-keys:usage'],
  ['GET', '/usage', 'api-keys:usage'],
  ['PATCH', `/api-keys/${ID}`, 'api-keys:update', { name: 'x' }],
  ['POST', `/api-keys/${ID}/secret`, 'api-keys:rotate'],
  ['DELETE', `/api-keys/${ID}`, 'api-keys:disable'],
  ['POST', '/revocations', 'revocations:create', { kind: 'subject', value: 'x' }],
  ['GET', '/revocations', 'revocations:list'],
  ['DELETE', `/revocations/${ID}`, 'revocations:delete'],
  ['POST', '/bans', 'bans:create', { kind: 'subject', value: 'x', seconds: 3_600 }],
  ['GET', '/bans', 'bans:list'],
  ['DELETE', `/bans/${ID}`, 'bans:delete'],
  ['GET', '/limits', 'limits:list'],
  ['POST', '/limits/overrides', 'limits:override', { limit: 'few', value: 'x', requests: 1 }],
  ['DELETE', `/limits/overrides/${ID}`, 'limits:override'],
  ['POST', '/limits/reset', 'limits:reset', { limit: 'few', value: 'x' }],
  ['GET', '/plans', 'plans:list'],
  ['POST', '/plans/assignments', 'plans:assign', { by: 'client', value: 'x', plan: 'pro' }],
  ['DELETE', `/plans/assignments/${ID}`, 'plans:assign'],
  [
    'POST',
    '/relations',
    'relations:write',
    { writes: [{ object: 'order:1', relation: 'viewer', subject: 'user:x' }] },
  ],
  ['GET', '/relations', 'relations:read'],
  [
    'POST',
    '/check',
    'relations:check',
    { object: 'order:1', relation: 'viewer', subject: 'user:x' },
  ],
  ['POST', '/expand', 'relations:read', { object: 'order:1', relation: 'viewer' }],
  ['GET', '/audit', 'audit:read'],
  ['GET', '/audit/chain', 'audit:verify'],
  ['POST', '/audit/erasures', 'audit:erase', { subject: 'x', issuer: 'https://idp.test' }],
  ['GET', `/audit/erasures/${ID}`, 'audit:erase'],
  ['POST', '/explanations', 'requests:explain', { method: 'GET', path: '/orders' }],
  ['GET', '/keys', 'keys:list'],
  ['POST', '/tokens', 'tokens:mint', { subject: 'x' }],
]

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

test('the table has every call of the operators’ API', () => {
  const routed = gateway
    .isolate()
    .routes.filter(({ method, path }) => method !== 'ALL' && path.startsWith('/-/admin/'))
    .map(({ method, path }) => `${method} ${path.slice(8).replaceAll(/:\w+/g, ID)}`)
  expect(CALLS.map(([method, path]) => `${method} ${path}`).sort()).toEqual(
    [...new Set(routed)].sort(),
  )
})

const ROWS = CALLS.map(([method, path, permission, body]) => ({ method, path, permission, body }))

describe.each(ROWS)('$method $path [S64]', ({ method, path, permission, body }) => {
  const refused = async (as: string, status: number, code: string) => {
    const before = await gateway.state()
    const reply = await gateway.admin(method, path, body, { as })
    expect(reply.status).toBe(status)
    expect(reply.body.code).toBe(code)
    expect(await gateway.state()).toBe(before)
    expect(gateway.events.at(-1)?.change).toBeUndefined()
    return reply
  }

  test('is 401 without credentials', async () => {
    const reply = await refused('', 401, 'missing_token')
    expect(reply.headers.get('www-authenticate')).not.toContain('error=')
  })

  test('is 403 for a reader, for look-alikes of the role, and for an operator with too narrow a scope', async () => {
    for (const claims of [
      { roles: ['reader'] },
      { roles: [] },
      { roles: ['Operator'] },
      { roles: ['operator '].map((role) => role.trim().toUpperCase()) },
      { roles: ['constructor'] },
      { roles: ['operator'], scope: 'portcullis:nothing:at-all' },
      { roles: ['operator'], scope: 'orders:read' },
    ]) {
      const reply = await refused(await gateway.token(claims), 403, 'insufficient_permission')
      expect(reply.headers.get('www-authenticate')).toContain(`scope="portcullis:${permission}"`)
    }
  })

  test('checks the permission before the input', async () => {
    if (method !== 'POST' && method !== 'PATCH') return expect(body).toBeUndefined()
    const reader = await gateway.token()
    const reply = await gateway.admin(method, path, '{"not": "json"', { as: reader })
    return expect(reply.status).toBe(403)
  })

  test('accepts a caller with exactly its permission', async () => {
    const scope = `portcullis:${permission}`
    for (const claims of [
      { roles: ['operator'], scope },
      { roles: [], scope },
    ]) {
      const reply = await gateway.admin(method, path, body, { as: await gateway.token(claims) })
      expect([200, 201, 204, 404, 503], reply.text).toContain(reply.status)
      if (reply.status === 503) expect(path).toMatch(/^\/audit|\/usage$/)
    }
  })
})

test('a role of the policy can have some calls and not others', async () => {
  const as = await gateway.token({ roles: ['auditor'] })
  expect((await gateway.admin('GET', '/revocations', undefined, { as })).status).toBe(200)
  const body = { kind: 'subject', value: 'x' }
  expect((await gateway.admin('POST', '/revocations', body, { as })).status).toBe(403)
})

test('a revoked operator loses access in both isolates', async () => {
  const sub = crypto.randomUUID()
  const as = await gateway.token({ sub, roles: ['operator'] })
  expect((await gateway.admin('GET', '/keys', undefined, { as })).status).toBe(200)
  await gateway.admin('POST', '/revocations', { kind: 'subject', value: sub })
  for (const at of [0, 1] as const)
    expect((await gateway.admin('GET', '/keys', undefined, { as, at })).status).toBe(401)
})
