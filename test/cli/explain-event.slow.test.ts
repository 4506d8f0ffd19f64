/** `portcullis explain --request-id`: what the event of a request has, and what it does not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { runHere } from './command-here.ts'
import { closeStubGateways, startStubGateway } from './stub-gateway.ts'

const POLICY = `
import { definePolicy } from 'portcullis'
import { relations } from 'portcullis/relations'
const direct = { this: {} }
const model = { schema_version: '1.1', type_definitions: [
  { type: 'user' },
  { type: 'document', relations: { viewer: direct },
    metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } } },
] }
const row = { method: 'GET', permission: 'docs:read' } as const
export default definePolicy({
  roles: { reader: ['docs:read'] },
  limits: {},
  relations: relations({ model, issuers: ['https://issuer.test'] }),
  routes: [
    { ...row, path: '/documents/:id', relation: { object: 'document:{params.id}', relation: 'viewer' } },
    { ...row, path: '/files/:id', relation: { object: 'document:file-{params.id}', relation: 'viewer' } },
    { ...row, path: '/plain/:id' },
  ],
})
`
const ENV = { PORTCULLIS_CLIENT_ID: 'a-client', PORTCULLIS_CLIENT_SECRET: 'a-secret' }
const ID = '0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'

let project: Awaited<ReturnType<typeof makeNodeProject>>
beforeAll(async () => {
  project = await makeNodeProject(POLICY)
})
afterAll(async () => {
  await closeStubGateways()
  await project?.close()
})

/** Explains the request of an event. */
async function explain(event: object, ...args: readonly string[]) {
  const recorded = {
    time: '2026-11-20T16:00:00.000Z',
    method: 'GET',
    decision: 'deny',
    reason: 'relation_missing:document#viewer',
    status: 403,
    address: '192.0.2.1',
    actor: { issuer: 'https://issuer.test', subject: 'alice', client: null, tenant: null },
    ...event,
  }
  const { url } = await startStubGateway({ '/-/admin/audit': { body: { events: [recorded] } } })
  return runHere(['explain', '--request-id', ID, ...args], {
    cwd: project.folder,
    env: { ...ENV, PORTCULLIS_URL: url },
  })
}

const grants = { roles: ['reader'], scopes: [], relation: 'document:42#viewer' }

describe('explain --request-id', () => {
  test('uses the recorded roles, and the recorded object in place of a sample', async () => {
    const { code, stdout, stderr } = await explain({ route: '/documents/:id', grants }, '--json')
    expect(code, stderr).toBe(1)
    const { reason, stages } = JSON.parse(stdout)
    expect(reason).toBe('relation_missing:document#viewer')
    expect(JSON.stringify(stages)).toContain('document:42#viewer@user:alice')
    expect(stdout).not.toContain('sample')
    const plain = { route: '/plain/:id', reason: 'ok', decision: 'allow', status: 200 }
    const allowed = await explain({ ...plain, grants: { roles: ['reader'], scopes: [] } })
    expect(allowed.code, allowed.stderr).toBe(0)
    expect(allowed.stdout).toContain('reader has the permission docs:read')
    const none = await explain({ ...plain, grants: { roles: [], scopes: [] } })
    expect(none.code).toBe(1)
  })

  test('options replace what the event has', async () => {
    const of = { route: '/documents/:id', grants }
    const { code, stdout } = await explain(of, '--role', 'guest', '--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout).reason).toBe('permission_missing:docs:read')
    const related = await explain(of, '--relation', 'document:42#viewer@user:alice')
    expect(related.code, related.stderr).toBe(0)
  })

  test.each([
    ['the object is another one', { route: '/files/:id', grants }],
    [
      'the event names no object',
      { route: '/documents/:id', grants: { roles: ['reader'], scopes: [] } },
    ],
    ['the event is of an earlier version', { route: '/documents/:id' }],
  ])('asks for the path if %s', async (_, event) => {
    const { code, stdout, stderr } = await explain(event, '--role', 'reader')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('name the path of the request')
    const path = event.route.replace(':id', '42')
    const named = await explain(event, 'GET', path, '--role', 'reader')
    expect(named.code, named.stderr).toBe(1)
    expect(named.stdout).toContain(path)
  })
})
