/** The changes of the policy: what a gateway with another policy has changed, and when. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { diffPolicies } from '../../../src/features/console/policy-diff.ts'
import { policyChangesView } from '../../../src/features/console/policy-history.ts'
import type { PolicyView } from '../../../src/features/console/policy-view.ts'
import type { GatewayEnv } from '../../../src/index.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { startConsole } from './gateway.ts'
import { policyWith } from './policy.ts'

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
beforeAll(async () => {
  gateway = await startConsole()
  operator = await gateway.cookieOf({ roles: ['operator'] })
})
afterAll(() => gateway?.close())

test('a gateway with another policy records the change, and the pages show it', async () => {
  const before = await gateway.visit(operator, '/-/console/policy')
  expect(before.text).toContain('No gateway on this Redis has used another policy.')
  const policy = policyWith()
  const roles = new Map([...policy.roles, ['auditor', ['orders:read']] as const])
  const other = gateway.isolate({ ...policy, roles })
  const request = (path: string) =>
    new Request(PUBLIC_URL + path, {
      headers: { Cookie: operator, 'CF-Connecting-IP': '192.0.2.1', Accept: 'text/html' },
    })
  const text = await (await other.fetch(request('/-/console/policy'))).text()
  expect(text).toContain('role auditor gains orders:read')
  expect((await gateway.visit(operator, '/-/console')).text).toContain('Policy changed')
})

test('the pages say who deployed a policy, as text, and that a deployment does not say it', async () => {
  const hostile = '<img src=x onerror=alert(1)>\u202e'
  const policy = policyWith()
  const roles = new Map([...policy.roles, ['billing', ['orders:read']] as const])
  const bindings: Partial<GatewayEnv> & { DEPLOYED_BY: string } = { DEPLOYED_BY: hostile }
  const other = gateway.isolate({ ...policy, roles }, bindings)
  const visit = async (path: string) => {
    const headers = { Cookie: operator, 'CF-Connecting-IP': '192.0.2.1', Accept: 'text/html' }
    return (await other.fetch(new Request(PUBLIC_URL + path, { headers }))).text()
  }
  const escaped = 'by &lt;img src=x onerror=alert(1)&gt;\\u{202e}'
  for (const path of ['/-/console/policy', '/-/console']) {
    const text = await visit(path)
    expect(text, path).toContain(escaped)
    expect(text, path).not.toContain('<img')
  }
  expect(await visit('/-/console/policy')).toContain('by an unknown person')
})

test('a reload on Node names who replaced the policy, instead of who started the server', async () => {
  const { UPSTASH_REDIS_REST_URL: _, UPSTASH_REDIS_REST_TOKEN: __, ...env } = gateway.environment
  const policy = policyWith()
  const withRole = (name: string) => ({
    ...policy,
    roles: new Map([...policy.roles, [name, ['orders:read']] as const]),
  })
  const server = await serve({
    ...{ policy: withRole('first'), port: 0, graceMs: 1_000, writeEvent: () => {} },
    env: { ...env, REDIS_URL: gateway.redis.redisUrl, DEPLOYED_BY: 'release 7' },
  })
  try {
    const token = await gateway.token({ claims: { roles: ['operator'] } })
    async function newest() {
      const headers = { Authorization: `Bearer ${token}` }
      const response = await fetch(`${server.url}/-/admin/policy/changes`, { headers })
      return z.parse(policyChangesView, await response.json()).changes[0]
    }
    expect((await newest())?.by).toBe('release 7')
    await server.reload(withRole('second'), { by: 'SIGHUP (ann@test)' })
    expect(await newest()).toMatchObject({
      by: 'SIGHUP (ann@test)',
      differences: expect.arrayContaining(['role second gains orders:read']),
    })
  } finally {
    await server.close()
  }
})

test('a policy that another version has recorded counts as absent', async () => {
  const rest = createRedisRest({ ...gateway.redis, timeoutMs: 20_000 })
  const [names] = await rest.send([['KEYS', '*policies*']])
  const [key = ''] = z.parse(z.array(z.string()), names?.result)
  const [members] = await rest.send([['ZRANGE', key, 0, 0]])
  const [member = ''] = z.parse(z.array(z.string()), members?.result)
  const record = key.replace('policies', 'policy:') + member.slice(member.indexOf(':') + 1)
  const [written] = await rest.send([['SET', record, '{"fieldOfAnother":1}', 'XX']])
  expect(written?.result).toBe('OK')
  for (const path of ['/-/console', '/-/console/policy'])
    expect((await gateway.visit(operator, path)).status, path).toBe(200)
})

test('an operator of a tenant reads no changes', async () => {
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  expect((await gateway.visit(tina, '/-/console')).text).not.toContain('Policy changed')
})

test('a difference is a line, and equal policies have none', () => {
  const route = { method: 'GET', host: null, path: '/a', permission: 'a:read', roles: [] }
  const one: PolicyView = {
    ...{ publicUrl: '', issuers: [], features: [], hasAuditStore: false },
    roles: [{ name: 'reader', permissions: ['a:read', 'b:read'] }],
    routes: [{ ...route, limits: [] }],
    limits: [{ name: 'standard', limit: 10, windowSeconds: 60 }],
  }
  const two: PolicyView = {
    ...one,
    features: ['openapi'],
    roles: [{ name: 'reader', permissions: ['a:read', 'c:read'] }],
    routes: [
      { ...route, permission: null, limits: ['standard'] },
      { ...route, path: '/b', limits: [] },
    ],
    limits: [{ name: 'standard', limit: 20, windowSeconds: 60 }],
  }
  expect(diffPolicies(one, one)).toEqual([])
  expect(diffPolicies(one, two)).toEqual([
    'route GET /a: anonymous, standard, was a:read',
    'route GET /b is new: a:read',
    'role reader gains c:read',
    'role reader loses b:read',
    'limit standard: 20 in 60 s, was 10 in 60 s',
    'feature openapi is new',
  ])
  expect(diffPolicies(two, one)).toContain('route GET /b is gone')
})
