/** The pages of limits, relations, MCP servers, keys and the audit chain: what people see and change. */
import { v7 } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anEvent } from '../../audit/event.ts'
import { prepare } from '../../audit/prepared.ts'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { startConsole } from './gateway.ts'
import { APPROVED_TOOL } from './policy.ts'

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
beforeAll(async () => {
  gateway = await startConsole()
  operator = await gateway.cookieOf({ roles: ['operator'], name: 'Olga Example' })
})
afterAll(() => gateway?.close())

const show = async (path: string, cookie = operator) =>
  (await gateway.visit(cookie, `/-/console${path}`)).text

async function act(action: string, values: Record<string, string>, cookie = operator) {
  const form = { action, reason: 'for the test', back: '/-/console', ...values }
  const { status, text, headers } = await gateway.visit(cookie, '/-/console/actions', { form })
  return { status, text, location: headers.get('location') ?? '' }
}

const query = async (path: string, form: Record<string, string>, cookie = operator) =>
  (await gateway.visit(cookie, `/-/console${path}`, { form })).text

/** The id in the form that has this action. */
const idIn = (text: string, action: string) =>
  new RegExp(`value="${action}">.*?name="id" value="([0-9a-f-]{36})"`, 's').exec(text)?.[1] ?? ''

test('a tenant gets a limit of its own, and loses it', async () => {
  const limit = { limit: 'tenants', value: 'acme', requests: '200' }
  expect((await act('createLimitOverride', limit)).status).toBe(303)
  const text = await show('/limits')
  expect(text).toContain('>200</td>')
  expect(text).toContain('Olga Example (olga)')
  const id = idIn(text, 'deleteLimitOverride')
  expect((await act('deleteLimitOverride', { id })).status).toBe(303)
  expect(await show('/limits')).not.toContain('>200</td>')
})

test('a second order says what was in force, and what is now', async () => {
  const notice = async (action: string, values: Record<string, string>) => {
    const form = { action, reason: 'for the test', back: '/-/console/limits', ...values }
    const { headers } = await gateway.visit(operator, '/-/console/actions', { form })
    const [cookie = ''] = headers.getSetCookie()
    const { text } = await gateway.visit(`${operator}; ${cookie.split(';', 1)}`, form.back)
    return /role="status">(.*?)<\/div>/s.exec(text)?.[1] ?? ''
  }
  const TIME = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC'
  const subject = { kind: 'subject', value: 'twice' }
  expect(await notice('createRevocation', subject)).not.toContain('lready')
  expect(await notice('createRevocation', subject)).toMatch(
    new RegExp(`<p>Already revoked until ${TIME}, now until ${TIME}\\.</p>`),
  )
  const other = { ...subject, tenant: 'acme' }
  expect(await notice('createRevocation', other)).not.toContain('lready')
  const token = { kind: 'token', value: 'an-id' }
  expect(await notice('createRevocation', token)).not.toContain('lready')
  expect(await notice('createRevocation', token)).toContain('<p>It was already revoked.</p>')
  await notice('createBan', { ...subject, seconds: '600' })
  expect(await notice('createBan', { ...subject, seconds: '900' })).toMatch(
    new RegExp(`Already banned until ${TIME}, now until ${TIME}\\.`),
  )
  expect(await notice('createBan', { ...subject, seconds: '60' })).toMatch(
    new RegExp(`still until ${TIME}: an earlier ban ends later`),
  )
  // Whether it had another plan is not known.
  expect(await notice('assignPlan', { by: 'tenant', value: 'umbrella', plan: 'pro' })).toContain(
    'to the tenant umbrella. If it had another plan, that plan no longer applies.',
  )
  const limit = { limit: 'tenants', value: 'initech', requests: '301', expiresInSeconds: '600' }
  expect(await notice('createLimitOverride', limit)).not.toContain('replaces')
  expect(await notice('createLimitOverride', { ...limit, requests: '302' })).toMatch(
    new RegExp(`This replaces 301 requests, until ${TIME}\\.`),
  )
})

test('the tables of limits of callers have the window, the end and the reason', async () => {
  const limit = { limit: 'tenants', value: 'hooli', requests: '7', reason: 'a trial' }
  await act('createLimitOverride', limit)
  for (const path of ['/limits', '/callers?kind=tenant&value=hooli'])
    expect(await show(path)).toMatch(
      />7<\/td><td[^>]*>60 s<\/td><td[^>]*>until removed<\/td><td[^>]*>a trial<\/td>/,
    )
  expect(await show('/callers?kind=tenant&value=hooli')).toContain('same limit: tenants 7.')
})

test('a ban is listed with its reason and the name of the person, and lifted', async () => {
  const ban = { kind: 'subject', value: 'mallory', seconds: '600' }
  expect((await act('createBan', ban)).status).toBe(303)
  const text = await show('/limits')
  expect(text).toContain('>mallory</td>')
  expect(text).toContain('for the test')
  expect((await act('deleteBan', { id: idIn(text, 'deleteBan') })).status).toBe(303)
  expect(await show('/limits')).not.toContain('>mallory</td>')
  expect(gateway.events.at(-2)).toMatchObject({
    change: { action: 'ban.delete' },
    fields: { operator: 'Olga Example', reason: 'for the test' },
  })
})

test('relations are written, checked, expanded, and searched for everybody who has one', async () => {
  const tuples = [
    ['folder:1', 'viewer', 'user:alice'],
    ['folder:1', 'viewer', 'user:mallory'],
    ['folder:1', 'banned', 'user:mallory'],
    ['folder:1', 'editor', 'group:staff#member'],
    ['group:staff', 'member', 'user:bob'],
  ] as const
  for (const [object, relation, subject] of tuples)
    expect((await act('writeRelation', { object, relation, subject })).status).toBe(303)
  expect(await show('/relations?object=folder:1')).toContain('group:staff#member')
  const question = { object: 'folder:1', relation: 'viewer' }
  expect(await query('/relations/check', { ...question, subject: 'user:bob' })).toContain(
    '<h1>Yes</h1>',
  )
  expect(await query('/relations/check', { ...question, subject: 'user:mallory' })).toContain(
    '<h1>No</h1>',
  )
  expect(await query('/relations/expand', question)).toContain('except')
  const who = await query('/relations/who', question)
  expect(who).toContain('>user:alice</td>')
  expect(who).toContain('>user:bob</td>')
  expect(who).not.toContain('>user:mallory</td>')
  const [object, relation, subject] = tuples[4]
  expect((await act('deleteRelation', { object, relation, subject })).status).toBe(303)
  expect(await query('/relations/who', question)).not.toContain('>user:bob</td>')
})

test('an operator of a tenant sees only relations of the tenant', async () => {
  const tuple = { object: 'folder:9', relation: 'viewer', subject: 'user:gina' }
  await act('writeRelation', { ...tuple, tenant: 'globex' })
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  expect(await show('/relations', tina)).not.toContain('user:gina')
  const refused = await gateway.visit(tina, '/-/console/relations?tenant=globex')
  expect(refused.status).toBe(403)
  const form = { object: 'folder:9', relation: 'viewer', tenant: 'globex' }
  expect(await query('/relations/who', form, tina)).not.toContain('>user:gina</td>')
})

test('a changed tool is shown, approved, and withdrawn again', async () => {
  expect(await gateway.listTools()).toEqual(['list_shelves'])
  expect(await show('/mcp')).toContain('No tool has another definition')
  gateway.changeTool({ ...APPROVED_TOOL, description: 'Lists all shelves.' })
  expect(await gateway.listTools()).toEqual([])
  const text = await show('/mcp')
  expect(text).toContain('<pre>Lists all shelves.</pre>')
  expect(text).toContain(
    '<p class="answer deny">1 tool of /mcp changed since it was approved: list_shelves.</p>',
  )
  const tool = { server: '/mcp', tool: 'list_shelves' }
  const hash = /name="hash" value="([^"]+)"/.exec(text)?.[1] ?? ''
  const other = await act('approveMcpTool', { ...tool, hash: `sha256-${'A'.repeat(43)}` })
  expect(other.status).toBe(422)
  expect((await act('approveMcpTool', { ...tool, hash })).status).toBe(303)
  expect(gateway.events.at(-1)).toMatchObject({
    change: { action: 'mcp-tool.approve', target: `/mcp list_shelves ${hash}` },
    fields: { operator: 'Olga Example', reason: 'for the test' },
  })
  expect(await show('/mcp')).toContain('No tool has another definition')
  expect(await gateway.another().listTools()).toEqual(['list_shelves'])
  expect((await act('withdrawMcpApproval', tool)).status).toBe(303)
  expect(await gateway.another().listTools()).toEqual([])
  expect((await act('withdrawMcpApproval', tool)).status).toBe(404)
})

test('an operator of a tenant neither sees nor approves tools', async () => {
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  expect((await gateway.visit(tina, '/-/console/mcp')).status).toBe(403)
  const form = { server: '/mcp', tool: 'list_shelves', hash: `sha256-${'A'.repeat(43)}` }
  expect((await act('approveMcpTool', form, tina)).status).toBe(403)
})

test('the keys of the gateway and the issuers have their state', async () => {
  const text = await show('/keys')
  expect(text).toContain('active')
  const rows = text.match(/<tr><td[^>]*>https:.*?<\/tr>/gs) ?? []
  const cells = rows.map((row) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell]) => cell),
  )
  expect(cells).toEqual([
    [ISSUER, '', '', 'configured'],
    ['https://github.com', '', '', 'no keys'],
    [gateway.publicUrl, '', '', 'configured'],
  ])
})

test('the chain is verified and exported, and a change of it is found', async () => {
  const time = new Date().toISOString()
  for (const subject of ['ada', 'bea'])
    await gateway.store([
      anEvent({ id: v7(), time, requestId: v7(), actor: { ...anEvent().actor, subject } }),
    ])
  expect(await show('/audit')).toContain('>Verified</strong>')
  const { headers, text } = await gateway.visit(operator, '/-/console/audit/export')
  expect(headers.get('content-disposition')).toMatch(/attachment; filename="\d{15}-\d{15}.ndjson"/)
  expect(text.split('\n').map((line) => Object.keys(JSON.parse(line || '{}')))).toContainEqual([
    'block',
  ])
  await prepare(gateway.db, "UPDATE audit_blocks SET hash = 'changed' WHERE first_seq = 1").run()
  expect(await show('/audit')).toContain('>Not verified</strong> The events 1 to 1 were changed.')
})

test('a person is erased, and the page has the state and not the person', async () => {
  const { status, location } = await act('createErasure', { subject: 'ada', issuer: ISSUER })
  expect(status).toBe(303)
  expect(location).toMatch(/^\/-\/console\/audit\?erasure=/)
  const text = await show(location.slice('/-/console'.length))
  expect(text).toContain('pending')
  expect(text).not.toContain('<dd>ada</dd>')
})

test('an operator of a tenant does not read the chain of all tenants', async () => {
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  expect(await show('/audit', tina)).not.toContain('Verified')
  expect((await gateway.visit(tina, '/-/console/audit/export')).status).toBe(403)
})

test('an explanation says what of the caller is revoked, and who is banned', async () => {
  const explain = async (form: Record<string, string>) =>
    (await gateway.visit(operator, '/-/console/explain', { form })).text
  const request = {
    method: 'GET',
    path: '/orders',
    subject: 'rex',
    issuer: ISSUER,
    roles: 'reader',
  }
  const clean = await explain(request)
  expect(clean).toContain('this credential is not revoked; the caller is not banned')
  expect(clean).not.toContain('Earlier credentials')
  const token = await gateway.token({ claims: { sub: 'rex', roles: ['reader'] } })
  const caller = { kind: 'subject', value: 'rex', reason: 'left' }
  await act('createRevocation', caller)
  const headers = { Authorization: `Bearer ${token}`, 'CF-Connecting-IP': '192.0.2.1' }
  const sent = await gateway.isolateFetch(new Request(`${PUBLIC_URL}/orders`, { headers }))
  expect(sent.status).toBe(401)
  // A token that is issued in the second of the revocation is revoked too.
  const second = Math.floor(Date.now() / 1_000)
  await expect.poll(() => Math.floor(Date.now() / 1_000)).toBeGreaterThan(second)
  const revoked = await explain(request)
  expect(revoked).toContain('Earlier credentials of this caller: refused, 401')
  expect(revoked).toMatch(
    /issued until <time[^>]*>[^<]*<\/time> UTC is revoked: a revocation of its subject/,
  )
  expect(revoked).toContain('<h2>allow, 200: ok</h2>')
  await act('createBan', { ...caller, seconds: '600' })
  expect(/<h2>([a-z]+, [^<]*)</.exec(await explain(request))?.[1]).toBe('deny, 403: banned:subject')
  const wrong = await explain({ ...request, path: 'orders' })
  expect(wrong).toMatch(/name="path"[^>]* value="orders"[^>]* aria-invalid="true"/)
})
