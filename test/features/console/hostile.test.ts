/** Hostile values, pages and callers against every page and every form of the console. */
import { v7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anEvent } from '../../audit/event.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { startConsole } from './gateway.ts'
import { FORMS, pathsOf } from './pages.ts'
import { APPROVED_TOOL } from './policy.ts'

const HOSTILE = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`
/** An id of a relation tuple has no white space and no colon. */
const HOSTILE_ID = `"'><script>alert(1)</script><img/src=x>`
const PLANTED_MS = Date.now() - 60_000
// Not of the clock: `v7()` counts on from its last id, also after a file that has set the clock ahead. The search by id
// expects the event at the time that the id names.
const REQUEST = v7({ msecs: PLANTED_MS })
// Streams do not end: their tests are in live.test.ts.
const PATHS = pathsOf({ request: REQUEST, key: 'KEY' }).filter(
  (path) => !/\/(?:tail|stream)$/.test(path),
)
const PLANTED = '-planted'

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
let reader: string
let viewer: string
let key: string
const pathOf = (path: string) => path.replace('KEY', key)

/** The notices of actions, as the next page shows them. */
const notices: string[] = []

/** Runs an action, and loads the page that follows. Returns the page with the notice. */
async function act(values: Record<string, string>) {
  const form = { back: '/-/console', reason: HOSTILE, ...values }
  const done = await gateway.visit(operator, '/-/console/actions', { form })
  expect([200, 303], done.text).toContain(done.status)
  const [cookie = ''] = done.headers.getSetCookie()
  const next = `${operator}; ${cookie.split(';', 1)}`
  const { text } = done.status === 200 ? done : await gateway.visit(next, '/-/console')
  notices.push(text)
  return text
}

const ESCAPED = '&lt;script&gt;alert(1)&lt;/script&gt;'

function expectEscaped(text: string, message?: string) {
  expect(text, message).not.toContain(HOSTILE)
  expect(text, message).not.toContain('<script>alert')
  expect(text, message).not.toContain('<img')
}

beforeAll(async () => {
  gateway = await startConsole()
  operator = await gateway.cookieOf({ roles: ['operator'], name: `Olga ${HOSTILE}` })
  reader = await gateway.cookieOf({ subject: 'rita', roles: ['reader'] })
  viewer = await gateway.cookieOf({ subject: 'vera', roles: ['viewer'] })
  const time = new Date(PLANTED_MS).toISOString()
  const actor = { issuer: ISSUER, subject: HOSTILE, client: HOSTILE, tenant: HOSTILE }
  await gateway.store([
    anEvent({
      ...{ id: v7(), time, requestId: REQUEST, route: HOSTILE, method: HOSTILE, host: HOSTILE },
      actor: { ...actor, tokenIdHash: null },
      ...{ decision: 'deny', reason: `token_rejected:${HOSTILE}`, status: 403, address: HOSTILE },
      ...{ observed: [HOSTILE], origin: HOSTILE, colo: HOSTILE },
      limits: [{ name: HOSTILE, limit: 1, remaining: 0 }],
      durationsMs: { [HOSTILE]: 1 },
      rejected: { seen: HOSTILE, expected: HOSTILE, verified: false },
      call: { method: HOSTILE, name: HOSTILE },
      grants: { roles: [HOSTILE], scopes: [HOSTILE], relation: HOSTILE },
      fields: { note: HOSTILE, [HOSTILE]: HOSTILE },
      change: { action: HOSTILE, target: HOSTILE },
    }),
  ])
  await act({ action: 'createRevocation', kind: 'session', value: HOSTILE + PLANTED })
  await act({ action: 'createBan', kind: 'subject', value: HOSTILE + PLANTED, seconds: '600' })
  await act({
    action: 'createLimitOverride',
    ...{ limit: 'standard', value: HOSTILE + PLANTED, requests: '5' },
  })
  await act({ action: 'assignPlan', by: 'subject', value: HOSTILE + PLANTED, plan: 'pro' })
  await act({
    action: 'writeRelation',
    ...{ object: `folder:${HOSTILE_ID}`, relation: 'banned', subject: `user:${HOSTILE_ID}` },
  })
  const created = await act({ action: 'createApiKey', name: HOSTILE, subject: HOSTILE + PLANTED })
  key = /api-keys\/([0-9a-f-]{36})/.exec(created)?.[1] ?? ''
  const about = { id: key, about: HOSTILE }
  await act({ action: 'rotateApiKey', ...about, graceSeconds: '0' })
  await act({ action: 'planApiKey', ...about, plan: 'pro' })
  await act({ action: 'resetLimit', limit: 'standard', value: HOSTILE })
  gateway.changeTool({ ...APPROVED_TOOL, description: HOSTILE, [HOSTILE]: HOSTILE })
  await gateway.listTools()
})
afterAll(() => gateway?.close())

describe.each(PATHS)('%s', (path) => {
  test('leads a browser without a session to the sign-in, and back', async () => {
    const { status, headers } = await gateway.visit('', pathOf(path))
    expect(status).toBe(303)
    expect(headers.get('location')).toMatch(/^\/oauth\/sign-in\?/)
    expect(headers.get('location')).toContain(encodeURIComponent(pathOf(path)).slice(0, 20))
  })

  test('is refused to the session of a reader, with a page', async () => {
    const { status, text } = await gateway.visit(reader, pathOf(path))
    expect(status).toBe(403)
    expect(text).toContain('<!doctype html>')
    expect(text).not.toContain('alert(1)')
  })

  test('shows nothing of the gateway to a role that only opens the console', async () => {
    const { text } = await gateway.visit(viewer, pathOf(path))
    expect(text).not.toContain('alert(1)')
    expect(text).not.toContain('orders:read')
  })

  test('has no inline script, cannot be framed, is not stored, and loads nothing [S91]', async () => {
    const { status, headers, text } = await gateway.visit(operator, pathOf(path))
    expect(status, text).toBe(200)
    expect(headers.get('cache-control')).toContain('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    if (!headers.get('content-type')?.startsWith('text/html')) return
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("form-action 'self'")
    const own = policy.replaceAll(/https:\/\/gateway\.test\/-\/console\/[a-z./]+/g, '')
    expect(own).not.toMatch(/unsafe|https?:|\*/)
    expect(text).not.toMatch(/<script(?! src="\/-\/console\/[a-z.]+")|<img|<iframe/i)
    const withoutValues = text.replaceAll(/"[^"<]*"/g, '""')
    expect(withoutValues).not.toMatch(/<[a-z]+[^>]* (?:style|on[a-z]+)=/i)
  })

  test('shows hostile values of records and of its query as text [S91]', async () => {
    const names = [
      'q',
      'reason',
      'last',
      'subject',
      'tenant',
      'reference',
      'kind',
      'value',
      'since',
    ]
    const query = new URLSearchParams(names.map((name) => [name, HOSTILE]))
    for (const one of [pathOf(path), `${pathOf(path).split('?')[0]}?${query}`]) {
      const { headers, text } = await gateway.visit(operator, one)
      if (!headers.get('content-type')?.startsWith('text/html')) continue
      expectEscaped(text, one)
    }
  })
})

test('every kind of record with a hostile value is on a page, so that the check above means something', async () => {
  const shown: Record<string, number> = {}
  for (const path of PATHS) {
    const { text } = await gateway.visit(operator, pathOf(path))
    shown[path] = text.split(ESCAPED).length - 1
  }
  const least = {
    '/-/console': 2,
    '/-/console/decisions': 6,
    [`/-/console/decisions/${REQUEST}`]: 20,
    '/-/console/api-keys': 4,
    '/-/console/api-keys/KEY': 3,
    '/-/console/limits': 5,
    '/-/console/relations': 2,
    '/-/console/mcp': 2,
  }
  for (const [path, count] of Object.entries(least))
    expect(shown[path], path).toBeGreaterThanOrEqual(count)
})

test('notices show hostile values and reasons as text [S91]', () => {
  const seen = notices.map((text) => {
    expectEscaped(text)
    const [, what = '', why = ''] =
      /<div class="card done" role="status"><p>(.*?)<\/p>.*<p>(Reason: .*?)<\/p><\/div>/s.exec(
        text,
      ) ?? []
    expect(why).toContain(ESCAPED)
    return { kind: what.split(':', 1)[0], isHostile: what.includes('&lt;script&gt;') }
  })
  expect(seen).toEqual(
    [
      ...['Revoked', 'Banned', 'Set', 'Given', 'Written', 'Created', 'Rotated', 'Changed'],
      'Reset',
    ].map((kind) => ({ kind, isHostile: true })),
  )
})

/** Names of the policy, as options, suggestions and words of forms have them. */
const NAMES = ['standard', 'tenants', 'pro', 'free', 'reader', 'orders:read', 'https://github.com']
const namesIn = (text: string) => NAMES.filter((name) => text.includes(`value="${name}"`))

test('a form with mistakes has names of the policy only for a visitor who may make its call', async () => {
  const formFor = async (visitor: string, action: string) => {
    const form = { action, reason: ' ', back: '/-/console' }
    return (await gateway.visit(visitor, '/-/console/actions', { form })).text
  }
  const shown = new Set<string>()
  for (const [action, path] of FORMS) {
    if (path !== '/actions') continue
    for (const name of namesIn(await formFor(operator, action))) shown.add(name)
    const text = await formFor(viewer, action)
    expect(text).toContain('-reason-mistake">Enter a value.')
    expect(namesIn(text), action).toEqual([])
  }
  expect([...shown].sort()).toEqual([...NAMES].sort())
})

/** The forms in which these values are no mistake, and their statuses. */
const ACCEPTED: Readonly<Record<string, number>> = { createErasure: 303, withdrawMcpApproval: 404 }

describe.each(FORMS)('the form %s with hostile values', (name, path, form) => {
  const hostile = Object.fromEntries(
    [...Object.keys(form), 'about', 'roles', 'scopes', 'days', 'tenant', 'seconds', 'plan'].map(
      (field) => [field, HOSTILE],
    ),
  )
  const { action = '', back = '' } = form
  const own = path === '/actions' ? { action, back } : {}

  test.each([HOSTILE, ' '])(
    'and the reason %j is shown again with them as text [S91]',
    async (reason) => {
      const sent = { ...hostile, ...own, reason }
      const { status, text } = await gateway.visit(operator, `/-/console${path}`, { form: sent })
      expect(status, text).toBe(reason === HOSTILE ? (ACCEPTED[name] ?? 422) : 422)
      expectEscaped(text)
      if (status === 422) expect(text).toContain(ESCAPED)
      // A secret keeps no value.
      expect(text).not.toMatch(/type="password"[^>]* value="[^"]/)
    },
  )
})

describe.each(FORMS)('the form %s', (_name, path, form) => {
  const send = (cookie: string, headers: Record<string, string> = {}) =>
    gateway.visit(cookie, `/-/console${path}`, { form, headers })

  test.each([
    ['another page', { Origin: 'https://evil.example' }],
    ['a page that hides its origin', { Origin: 'null' }],
    ['another site, as the browser says', { 'Sec-Fetch-Site': 'cross-site' }],
  ] as const)('has no effect from %s [S91]', async (_from, headers) => {
    expect((await send(operator, headers)).status).toBe(403)
    expect(gateway.events.at(-1)?.reason).toMatch(/^cross_origin_request/)
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  })

  test.each(['reader', 'viewer'] as const)('is refused to a %s [S91]', async (role) => {
    const { status, text } = await send(role === 'reader' ? reader : viewer)
    expect(status, text).toBe(403)
    expect(gateway.events.at(-1)?.reason).toMatch(/^permission_missing/)
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  })

  test('is no page to load', async () => {
    expect((await gateway.visit(operator, `/-/console${path}`)).status).not.toBe(200)
  })
})

describe.each(FORMS.filter(([, path]) => path === '/actions'))(
  'the action %s',
  (_name, path, form) => {
    test('needs a reason, which the form says', async () => {
      const { status, text } = await gateway.visit(operator, `/-/console${path}`, {
        form: { ...form, reason: ' ' },
      })
      expect([status, text]).toEqual([
        422,
        expect.stringContaining('-reason-mistake">Enter a value.'),
      ])
      expect(gateway.events.at(-1)?.change).toBeUndefined()
    })
  },
)
