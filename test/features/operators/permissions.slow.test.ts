import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CALLS, ID } from './calls.ts'
import { startGateway, type TestGateway } from './gateway.ts'

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
