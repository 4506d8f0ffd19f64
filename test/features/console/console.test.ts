/** The console from outside: who may open it, what it changes, and what hostile values become in it. */
import { v7 } from 'uuid'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { anEvent } from '../../audit/event.ts'
import { prepare } from '../../audit/prepared.ts'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { startConsole } from './gateway.ts'

const OF_ACME = v7()
const DAY_MS = 86_400_000

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
beforeAll(async () => {
  gateway = await startConsole()
  const time = new Date(Date.now() - 60_000).toISOString()
  const ofTenant = (tenant: string) => ({
    issuer: ISSUER,
    subject: `user-of-${tenant}`,
    client: null,
    tenant,
    tokenIdHash: null,
  })
  await gateway.store([
    anEvent({ id: v7(), time, requestId: OF_ACME, actor: ofTenant('acme') }),
    anEvent({ id: v7(), time, requestId: v7(), actor: ofTenant('globex') }),
  ])
})
afterAll(() => gateway?.close())
beforeEach(async () => {
  operator = await gateway.cookieOf({ roles: ['operator'] })
})

test('a person revokes a subject with a reason, and the event has the name and the reason', async () => {
  const name = 'Olga Example'
  const cookie = await gateway.cookieOf({ roles: ['operator'], name })
  const back = '/-/console/callers?kind=subject&value=mallory'
  const form = { action: 'createRevocation', kind: 'subject', value: 'mallory', back }
  const silent = await gateway.visit(cookie, '/-/console/actions', { form })
  expect(silent.status).toBe(422)
  const { status, headers, text } = await gateway.visit(cookie, '/-/console/actions', {
    form: { ...form, reason: 'stolen laptop' },
  })
  expect(status, text).toBe(303)
  expect(headers.get('location')).toBe(back)
  expect(gateway.events.at(-1)).toMatchObject({
    actor: { subject: 'olga', issuer: ISSUER },
    change: { action: 'revocation.create' },
    fields: { operator: name, reason: 'stolen laptop' },
  })
  const shown = await gateway.visit(cookie, back)
  expect(shown.text).toContain('stolen laptop')
  expect(shown.text).toContain('Olga Example (olga)')
})

async function actAs(cookie: string, form: Record<string, string>) {
  const { status, text } = await gateway.visit(cookie, '/-/console/actions', { form })
  expect(status, text).toBe(303)
}

test('a mistake keeps the form, its values, and says what is wrong beside the field', async () => {
  const back = '/-/console/limits'
  const values = { limit: 'tenants', value: 'a "caller"', requests: '1.5', expiresInSeconds: '0' }
  const { status, text } = await gateway.visit(operator, '/-/console/actions', {
    form: { action: 'createLimitOverride', ...values, back, reason: 'a bigger contract' },
  })
  expect(status).toBe(422)
  expect(gateway.events.at(-1)).toMatchObject({ decision: 'deny', reason: /invalid_input/ })
  const field = (name: string) => new RegExp(`<input id="(form-\\d+-${name})"[^>]*>`).exec(text)
  expect(field('value')?.[0]).toContain('value="a &quot;caller&quot;"')
  expect(field('reason')?.[0]).toContain('value="a bigger contract"')
  expect(text).toContain('<option value="tenants" selected>tenants: 10 in 60 s, by tenant</option>')
  for (const [name, mistake] of [
    ['requests', 'Enter a whole number.'],
    ['expiresInSeconds', 'Enter a number of at least 1.'],
  ] as const) {
    const [input, id] = field(name) ?? []
    expect(input).toContain(`value="${values[name as keyof typeof values]}"`)
    expect(input).toContain(`aria-invalid="true" aria-describedby="${id}-mistake"`)
    expect(text).toContain(`<p class="mistake" id="${id}-mistake">${mistake}</p>`)
    expect(text).toMatch(new RegExp(`<a href="#${id}">[^<]+</a>: ${mistake}`))
  }
  expect(text).toContain(`<a href="${back}">Back, without a change</a>`)
  // With the values of the form, the corrected one is accepted.
  const form = { action: 'createLimitOverride', ...values, requests: '5', expiresInSeconds: '' }
  await actAs(operator, { ...form, back, reason: 'x' })
})

test('a mistake keeps the values too while the choices of its form cannot be read', async () => {
  const index = 'pc:limit-overrides'
  await gateway.redis.direct.rename(index, `${index}-kept`)
  await gateway.redis.direct.set(index, 'no index')
  try {
    const { status, text } = await gateway.visit(operator, '/-/console/actions', {
      form: {
        action: 'createLimitOverride',
        limit: 'tenants',
        value: 'kept',
        requests: '1.5',
        reason: 'x',
      },
    })
    expect(status, text).toBe(422)
    expect(text).toContain('value="kept"')
    expect(text).toContain('Enter a whole number.')
  } finally {
    await gateway.redis.direct.rename(`${index}-kept`, index)
  }
})

test('a value that names nothing in the tenant keeps the form, and says so beside the field', async () => {
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  const values = { limit: 'clients', value: v7(), requests: '5', reason: 'mistyped' }
  const form = { action: 'createLimitOverride', ...values }
  const { status, text } = await gateway.visit(tina, '/-/console/actions', { form })
  expect(status, text).toBe(404)
  expect(text).toContain('There is no such client or key, or it is not in your tenant.</p>')
  expect(text).toMatch(new RegExp(`value="${form.value}"[^>]* aria-invalid="true"`))
  expect(text).toContain('value="mistyped"')
  expect(text).not.toContain('was removed meanwhile')
  const approval = { action: 'withdrawMcpApproval', server: '/mcp', tool: 'none', reason: 'kept' }
  const other = await gateway.visit(operator, '/-/console/actions', { form: approval })
  expect([other.status, other.text]).toEqual([404, expect.stringContaining('value="kept"')])
  expect(other.text).toContain('There is no such record.')
})

test.each([
  ['/relations/check', { object: 'folder', relation: 'viewer', subject: 'user:alice' }, 'object'],
  ['/relations/who', { object: 'folder:1', relation: '' }, 'relation'],
])('the form of %s is shown again with its mistake', async (path, form, wrong) => {
  const { status, text } = await gateway.visit(operator, `/-/console${path}`, { form })
  expect(status, text).toBe(422)
  expect(text).toMatch(new RegExp(`name="${wrong}"[^>]* aria-invalid="true"`))
  expect(text).toContain(`value="${form.object}"`)
})

test('an action on a record that has gone says so, and leads back', async () => {
  const form = { action: 'deleteBan', id: crypto.randomUUID(), reason: 'x' }
  const { status, text } = await gateway.visit(operator, '/-/console/actions', {
    form: { ...form, back: '/-/console/limits' },
  })
  expect([status, text]).toEqual([404, expect.stringContaining('was removed meanwhile')])
  expect(text).toContain('<a href="/-/console/limits">Back</a>')
})

test('only a button that takes something away is red', async () => {
  const ban = { action: 'createBan', kind: 'subject', value: 'noisy', seconds: '600' }
  await actAs(operator, { ...ban, back: '/-/console/limits', reason: 'floods the API' })
  const pages = ['/limits', '/api-keys', '/audit', '/callers?kind=subject&value=mallory']
  const texts = await Promise.all(
    pages.map(async (path) => (await gateway.visit(operator, `/-/console${path}`)).text),
  )
  const labels = (pattern: RegExp) =>
    [...texts.join('').matchAll(pattern)].map(([, label]) => label)
  const red = labels(/<button class="danger">([^<]+)</g)
  const others = labels(/<button>([^<]+)</g)
  for (const label of [
    'Revoke this subject everywhere',
    'Ban a caller',
    'Erase a person from the trail',
  ])
    expect(red).toContain(label)
  for (const label of [
    'Create an API key',
    'Set a limit of its own',
    'Reset a count',
    'Give a plan',
    'Lift this ban',
    'Remove this revocation',
  ]) {
    expect(others).toContain(label)
    expect(red).not.toContain(label)
  }
})

/** The names in the navigation of a page. */
const menuIn = (text: string) =>
  [...(/<nav.*?<\/nav>/s.exec(text)?.[0] ?? '').matchAll(/>([^<>]+)<\/a>/g)].map(([, name]) => name)

const WHOLE_MENU = [
  ...['Overview', 'Decisions', 'Callers', 'API keys', 'Limits and bans', 'Policy', 'Relations'],
  ...['MCP', 'Keys and issuers', 'Audit chain'],
]

test.each([
  ['operator', undefined, WHOLE_MENU],
  ['operator', 'acme', WHOLE_MENU.filter((name) => name !== 'Policy' && name !== 'MCP')],
  ['viewer', undefined, ['Overview']],
  ['support', undefined, ['Overview', 'Callers']],
])(
  'the navigation of %s of the tenant %s has the pages that it may read',
  async (role, tenant, names) => {
    const person = { subject: 'nora', roles: [role], ...(tenant !== undefined && { tenant }) }
    const { text } = await gateway.visit(await gateway.cookieOf(person), '/-/console')
    expect(menuIn(text)).toEqual(names)
  },
)

test.each([
  ['/decisions', 'portcullis:audit:read'],
  [`/decisions/${OF_ACME}`, 'portcullis:audit:read'],
  ['/callers', 'portcullis:callers:read'],
  ['/limits', 'portcullis:limits:list, portcullis:bans:list, portcullis:revocations:list'],
  ['/api-keys', 'portcullis:api-keys:list'],
  ['/policy', 'portcullis:policy:read'],
  ['/relations', 'portcullis:relations:read'],
  ['/mcp', 'portcullis:mcp:read'],
  ['/keys', 'portcullis:keys:list'],
  ['/audit', 'portcullis:audit:verify, portcullis:audit:erase'],
])(
  '%s without a permission of its content is 403, names %s, and the request',
  async (path, named) => {
    const viewer = await gateway.cookieOf({ subject: 'vera', roles: ['viewer'] })
    const { status, headers, text } = await gateway.visit(viewer, `/-/console${path}`)
    expect(status).toBe(403)
    expect(text).toContain(named)
    const { requestId, reason } = gateway.events.at(-1) ?? {}
    expect(reason).toBe(`permission_missing:${named.split(',')[0]}`)
    expect(text).toContain(`Request: <code>${requestId}</code>`)
    expect(headers.get('X-Request-Id')).toBe(requestId)
  },
)

test.each([
  ['/-/console', 303],
  ['/-/console/decisions', 303],
  ['/-/console/decision', 404],
  ['/-/console/actions', 405],
  ['/-/console/a%2fb', 400],
])('a browser that sends no Sec-Fetch-Mode gets no JSON of %s, but %i', async (path, status) => {
  const load = (accept: string) =>
    gateway.isolateFetch(new Request(PUBLIC_URL + path, { headers: { Accept: accept } }))
  const page = await load('text/html,*/*;q=0.8')
  expect(page.status).toBe(status)
  if (status === 303) return expect(page.headers.get('Location')).toMatch(/^\/oauth\/sign-in\?/)
  expect(page.headers.get('Content-Type')).toContain('text/html')
  expect(await page.text()).toContain(`<code>${page.headers.get('X-Request-Id')}</code>`)
  const program = await load('*/*')
  expect(program.headers.get('Content-Type')).toContain('application/problem+json')
})

test('/-/console/ leads to /-/console, and other readings of it do not', async () => {
  const load = (path: string) => gateway.visit(operator, path)
  const { status, headers, text } = await load('/-/console/?last=24h')
  expect([status, text]).toEqual([303, ''])
  expect(headers.get('Location')).toBe('/-/console?last=24h')
  expect(headers.get('Cache-Control')).toContain('no-store')
  for (const path of ['/-/console//', '/-/%63onsole/', '/-/console/%2e/x', '/-/console/x/'])
    expect((await load(path)).headers.get('Location')).toBeNull()
})

test('each figure of the overview has its period and its source', async () => {
  const { text } = await gateway.visit(operator, '/-/console?last=24h')
  expect(text).toMatch(
    /Decisions from .* to .* UTC, counted from the events in the audit database\./s,
  )
  expect(text).toContain('From the shared counters in Redis')
  // They began at another time than the period.
  expect(text).not.toContain('in total')
})

test('a role that only opens the console reads and changes nothing', async () => {
  const viewer = await gateway.cookieOf({ subject: 'vera', roles: ['viewer'] })
  for (const action of ['createRevocation', 'createBan', 'createLimitOverride', 'disableApiKey']) {
    const form = { action, kind: 'subject', value: 'x', seconds: '60', reason: 'x' }
    const refused = await gateway.visit(viewer, '/-/console/actions', { form })
    expect(refused.status).toBe(403)
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  }
})

/** Stores an event, and returns its page. */
async function pageOfEvent(different: Parameters<typeof anEvent>[0], cookie = operator) {
  const requestId = v7()
  const time = new Date(Date.now() - 60_000).toISOString()
  const actor = { ...anEvent().actor, tenant: 'initech' }
  await gateway.store([anEvent({ id: v7(), time, requestId, actor, ...different })])
  const { status, text } = await gateway.visit(cookie, `/-/console/decisions/${requestId}`)
  expect(status, text).toBe(200)
  return text
}

const BANNED = { decision: 'deny', reason: 'banned:subject', status: 403 } as const

test.each([
  [{ ...BANNED, durationsMs: { authenticate: 1, admit: 2 } }, ['passed', 'refused']],
  [{ ...BANNED, reason: 'stream_ended:banned:subject' }, ['passed', 'passed', 'passed']],
  // The answer of the origin was refused.
  [{ ...BANNED, decision: 'error', reason: 'origin:malformed' }, ['reached', 'reached', 'reached']],
  [{ ...BANNED, durationsMs: { authenticate: 1, validate: 2 } }, ['reached', 'reached']],
  [{ ...BANNED, route: '/oauth/token', durationsMs: { admit: 1 } }, ['reached']],
] as const)(
  'a stage of %o is marked only if it has refused for certain',
  async (event, results) => {
    const text = await pageOfEvent(event)
    const stages = /<h2>Stages<\/h2>.*?<\/table>/s.exec(text)?.[0] ?? ''
    const cells = stages.matchAll(/<td data-column="Result">(?:<span[^>]*>)?(\w+)/g)
    expect([...cells].map(([, result]) => result)).toEqual(results)
  },
)

test('the forms of an event offer the limits and the roles of the policy', async () => {
  const text = await pageOfEvent({})
  expect(text).toContain('<option value="standard">standard: 100 in 60 s, by subject</option>')
  expect(text).not.toContain('<option value="tenants"')
  expect(text).toContain('<input type="checkbox" name="roles" value="reader"')
})

test('an operator of a tenant sees only events of the tenant', async () => {
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  const { text } = await gateway.visit(tina, '/-/console/decisions')
  expect(text).toContain('user-of-acme')
  expect(text).not.toContain('user-of-globex')
  const other = await gateway.visit(tina, '/-/console/callers?kind=subject&value=user-of-globex')
  expect(other.text).toContain('No event matches.')
})

test('a page without events says in which part of the trail none matches', async () => {
  const now = Math.floor(Date.now() / 1_000) * 1_000
  const timeOf = (ms: number) => new Date(ms).toISOString()
  const [from, to] = [timeOf(now - 2 * DAY_MS), timeOf(now - DAY_MS)]
  const decisions = async (query: Record<string, string>) => {
    const path = `/-/console/decisions?${new URLSearchParams({ q: 'cora', ...query })}`
    return (await gateway.visit(operator, path)).text
  }
  const cursorAt = (ms: number) => `${ms}.${v7()}`
  const none = `No event matches between ${from} and ${to}.`
  const withOffset = to.replace('.000Z', '+00:00')
  expect(await decisions({ since: from, until: withOffset })).toContain(none)
  const cursor = cursorAt(now - DAY_MS)
  expect(await decisions({ since: from, cursor })).toContain(none)
  expect(await decisions({ last: '15m', cursor })).toContain('No event matches.')

  // The filters of 8,000 blocks are a page, which begins with the last one of the page before. The console reads three.
  const LAST = 1_000_000
  const insert = `INSERT INTO audit_blocks (first_seq, last_seq, min_ms, max_ms, previous_hash, hash, terms, ids, events)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 34000)
    SELECT ${LAST} - i, ${LAST} - i, ${now} - i, ${now} - i, '', '', X'00', X'', X'' FROM n`
  await prepare(gateway.db, insert).run()
  try {
    const since = `No event matches since ${timeOf(now - 23_998)}.`
    expect(await decisions({})).toContain(since)
    expect(await decisions({ cursor: cursorAt(now - 10_000) })).toContain(
      `No event matches between ${timeOf(now - 33_997)} and ${timeOf(now - 10_000)}.`,
    )
    const { text } = await gateway.visit(operator, '/-/console/callers?kind=subject&value=cora')
    expect(text).toContain(since)
    expect(text).not.toContain('Not all records are shown')
  } finally {
    await prepare(gateway.db, "DELETE FROM audit_blocks WHERE terms = X'00'").run()
  }
})

test('an operator of a tenant reads no policy of all tenants', async () => {
  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  for (const page of ['policy', 'mcp']) {
    const refused = await gateway.visit(tina, `/-/console/${page}`)
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('You are an operator of a tenant')
    expect(refused.text).not.toContain('needs the permission')
  }
  const { status, text } = await gateway.visit(tina, '/-/console')
  expect(status).toBe(200)
  expect(text).not.toContain('requests:explain')
})

test('the page of a caller shows what the permissions of the lists allow', async () => {
  const sam = await gateway.cookieOf({ subject: 'sam', roles: ['support'] })
  const path = '/-/console/callers?kind=subject&value=user-of-acme'
  const whole = await gateway.visit(operator, path)
  expect(whole.text).toContain(OF_ACME)
  expect(whole.text).toContain('standard: 100 in 60 s')
  const { status, text } = await gateway.visit(sam, path)
  expect(status).toBe(200)
  expect(text).not.toContain(OF_ACME)
  expect(text).not.toContain('100 in 60 s')
})

test('the page of a tenant has its records, and an operator of another tenant sees none of them', async () => {
  const pageOf = (tenant: string) => `/-/console/callers?kind=tenant&value=${tenant}`
  const back = pageOf('globex')
  const forms = [
    { action: 'createRevocation', kind: 'tenant', value: 'globex' },
    { action: 'createLimitOverride', limit: 'tenants', value: 'globex', requests: '217217' },
    { action: 'createApiKey', name: 'globex-key', subject: 'robot', tenant: 'globex' },
  ]
  for (const form of forms) {
    const acted = await gateway.visit(operator, '/-/console/actions', {
      form: { ...form, back, reason: 'contract ended' },
    })
    expect(acted.status, acted.text).toBeLessThan(400)
  }
  // A random id of a link contains no comma.
  const marks = ['contract ended', '217,217', 'globex-key', 'user-of-globex']
  const { text } = await gateway.visit(operator, back)
  for (const mark of marks) expect(text).toContain(mark)
  expect(text).toContain('tenants: 10 in 60 s')
  expect(text).not.toContain('user-of-acme')

  const tina = await gateway.cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  const own = await gateway.visit(tina, pageOf('acme'))
  expect(own.text).toContain('user-of-acme')
  for (const path of [back, pageOf('acme')]) {
    const seen = await gateway.visit(tina, path)
    expect(seen.status).toBe(200)
    for (const mark of marks) expect(seen.text).not.toContain(mark)
  }
})

test('an operator of a tenant sees the revocation of the whole tenant that the platform has ordered', async () => {
  const page = '/-/console/callers?kind=tenant&value=acme'
  const form = { action: 'createRevocation', kind: 'tenant', value: 'acme', back: page }
  await gateway.visit(operator, '/-/console/actions', { form: { ...form, reason: 'acme is sold' } })
  // A session of the same second would be revoked too.
  const second = Math.floor(Date.now() / 1000)
  await expect.poll(() => Math.floor(Date.now() / 1000)).toBeGreaterThan(second)
  const tim = await gateway.cookieOf({ subject: 'tim', roles: ['operator'], tenant: 'acme' })
  expect((await gateway.visit(tim, page)).text).toContain('acme is sold')
})

test('the page of a caller says of no plan that it has the number of the default plan', async () => {
  const { text } = await gateway.visit(operator, '/-/console/callers?kind=key&value=unknown')
  expect(text).toContain('plan: the number of its plan in 60 s')
})

test('an action needs the login that operators() demands for its call', async () => {
  const strict = await startConsole({}, { authentication: { maxAgeSeconds: 60 } })
  try {
    const form = {
      ...{ action: 'createBan', kind: 'subject', value: 'x', seconds: '60', reason: 'x' },
      back: '/-/console',
    }
    const old = await strict.cookieOf({ roles: ['operator'], ageSeconds: 600 })
    const { status, text } = await strict.visit(old, '/-/console/actions', { form })
    expect([status, text]).toEqual([401, expect.stringContaining('max_age=60')])
    expect(strict.events.at(-1)?.change).toBeUndefined()
    const fresh = await strict.cookieOf({ roles: ['operator'] })
    expect((await strict.visit(fresh, '/-/console/actions', { form })).status).toBe(303)
  } finally {
    await strict.close()
  }
})

test.each([
  'https://evil.example/',
  '//evil.example',
  '/-/console\\evil',
  '/orders',
  '/-/consoles',
])('a form that leads to %s is refused before its action', async (back) => {
  const form = {
    action: 'createBan',
    kind: 'subject',
    value: 'x',
    seconds: '60',
    reason: 'x',
    back,
  }
  const { status } = await gateway.visit(operator, '/-/console/actions', { form })
  expect(status).toBe(422)
  expect(gateway.events.at(-1)?.change).toBeUndefined()
})

test.each(['mintToken', 'createClient', 'constructor', '__proto__', ''])(
  'the console runs no call beside its actions: %s',
  async (action) => {
    const form = { action, reason: 'x', subject: 'x' }
    const { status } = await gateway.visit(operator, '/-/console/actions', { form })
    expect(status).toBe(422)
  },
)

test('the operators’ API accepts no session because of the console', async () => {
  const response = await gateway.visit(operator, '/-/admin/bans')
  expect(response.status).toBe(401)
})

test('the counts of a summary are those of the events', async () => {
  const token = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
  const response = await gateway.isolateFetch(
    new Request(`${PUBLIC_URL}/-/admin/audit/summary?tenant=acme`, {
      headers: { Authorization: `Bearer ${token}`, 'CF-Connecting-IP': '192.0.2.1' },
    }),
  )
  const summary = (await response.json()) as Record<string, unknown>
  expect(response.status, JSON.stringify(summary)).toBe(200)
  expect(summary).toMatchObject({
    ...{ allow: 1, deny: 0, error: 0 },
    facets: { subject: [{ value: 'user-of-acme', count: 1 }] },
  })
})

test.each([
  ['2026-10-20T00:00:00Z', 200],
  ['2026-10-19T23:59:59Z', 422],
])('a summary covers at most 31 days: since %s is %i', async (since, status) => {
  const token = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
  const query = new URLSearchParams({ since, until: '2026-11-20T00:00:00Z' })
  const response = await gateway.isolateFetch(
    new Request(`${PUBLIC_URL}/-/admin/audit/summary?${query}`, {
      headers: { Authorization: `Bearer ${token}`, 'CF-Connecting-IP': '192.0.2.1' },
    }),
  )
  const text = await response.text()
  expect(response.status, text).toBe(status)
  if (status !== 200) expect(text).toContain('at most 31 days before the end of the period')
})

test('a person explains a request, which has no effect', async () => {
  const form = { method: 'GET', path: '/orders', subject: 'alice', roles: 'reader' }
  const { status, text } = await gateway.visit(operator, '/-/console/explain', { form })
  expect(status, text).toBe(200)
  expect(text).toContain('authorize')
})
