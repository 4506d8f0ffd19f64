/** The pages of API keys and plans: what people do with them, and what is shown only once. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { startConsole } from './gateway.ts'

const LIST = '/-/console/api-keys'

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
beforeAll(async () => {
  gateway = await startConsole()
  operator = await gateway.cookieOf({ roles: ['operator'], name: 'Olga Example' })
})
afterAll(() => gateway?.close())

const act = (action: string, values: Record<string, string>, cookie = operator) =>
  gateway.visit(cookie, '/-/console/actions', {
    form: { action, reason: 'for the test', back: LIST, ...values },
  })
const secretIn = (text: string) => /value="(pk_[0-9A-Za-z]{49})"/.exec(text)?.[1] ?? ''
const idIn = (text: string) => /api-keys\/([0-9a-f-]{36})/.exec(text)?.[1] ?? ''

async function create(values: Record<string, string>, cookie = operator) {
  const { status, text } = await act('createApiKey', { roles: 'reader', ...values }, cookie)
  expect(status, text).toBe(200)
  return { id: idIn(text), secret: secretIn(text) }
}

const callWith = (secret: string, path: string) =>
  gateway.isolateFetch(
    new Request(PUBLIC_URL + path, {
      headers: { Authorization: `Bearer ${secret}`, 'CF-Connecting-IP': '192.0.2.1' },
    }),
  )

test('a new secret is shown once, and is in no other page, event or location', async () => {
  const { id, secret } = await create({ name: 'nightly report', subject: 'reporter' })
  expect(gateway.events.at(-1)).toMatchObject({
    change: { action: 'api-key.create', target: id },
    fields: { operator: 'Olga Example', reason: 'for the test' },
  })
  expect((await callWith(secret, '/orders')).status).toBe(200)
  const { text: shown } = await gateway.visit(operator, `${LIST}/${id}`)
  expect(shown).toContain('by Olga Example (olga)')
  for (const path of [LIST, `${LIST}/${id}`])
    expect((await gateway.visit(operator, path)).text).not.toContain(secret)
  expect(JSON.stringify(gateway.events)).not.toContain(secret)
})

test('a new secret can be copied: it is monospaced, and one script of the gateway adds a button', async () => {
  const { headers, text } = await act('createApiKey', { name: 'copied', subject: 'reporter' })
  expect(text).toContain('It is shown only once.')
  expect(text).toMatch(/<input id="secret" class="secret" value="pk_\w{49}" readonly/)
  expect(text).toContain('.secret { font-family: ui-monospace, monospace; }')
  expect(text).toContain('<script src="/-/console/copy.js" defer></script>')
  expect(headers.get('content-security-policy')).toMatch(
    new RegExp(`; script-src ${PUBLIC_URL}/-/console/copy\\.js$`),
  )
  expect(text).toContain('<p>Created: the API key copied of reporter. It does not expire.</p>')
  const script = await gateway.visit(operator, '/-/console/copy.js')
  expect(script.headers.get('content-type')).toMatch(/^text\/javascript/)
  expect(script.text).toContain('navigator.clipboard.writeText(field.value)')
})

test('a name that the policy does not have is quoted, and those that it has are choices', async () => {
  const form = {
    ...{ action: 'createApiKey', name: 'nightly', subject: 'reporter', roles: 'redaer reader' },
    ...{ scopes: 'orders:read a"b', reason: 'x', back: '/-/console/api-keys' },
  }
  const send = (values: object) =>
    gateway.visit(operator, '/-/console/actions', { form: { ...form, ...values } })
  const { status, text } = await send({})
  expect([status, text]).toEqual([422, expect.stringContaining('a&quot;b must be a scope token.')])
  const unknown = await send({ scopes: '' })
  expect(unknown.text).toContain(
    'redaer must be a role of the policy; did you mean &quot;reader&quot;?</p>',
  )
  expect(unknown.text).toContain(
    '<label><input type="checkbox" name="roles" value="reader" checked> reader</label>',
  )
  for (const page of [text, unknown.text]) expect(page).not.toMatch(/roles\/0|scopes\/1/)
  const page = (await gateway.visit(operator, '/-/console/api-keys')).text
  expect(page).toContain('<input type="checkbox" name="roles" value="viewer">')
  expect(page).toMatch(/<datalist[^>]*>.*<option value="orders:read"><\/option>/)
})

test('too many names are a mistake in names, not in a number', async () => {
  const scopes = Array.from({ length: 101 }, (_, at) => `s${at}`).join(' ')
  const { status, text } = await act('createApiKey', { name: 'x', subject: 'y', scopes })
  expect(status).toBe(422)
  expect(text).toMatch(/Enter at most \d+ names\./)
  expect(text).not.toContain('Enter a number')
})

test('a pasted key is found, and is in neither the page nor an event nor a URL [S91]', async () => {
  const { secret } = await create({ name: 'lost in a repository', subject: 'reporter' })
  const { status, headers, text } = await gateway.visit(operator, `${LIST}/lookup`, {
    form: { apiKey: ` ${secret} ` },
  })
  expect(status, text).toBe(200)
  expect(text).toContain('lost in a repository')
  expect(text).toContain('the present secret')
  expect(text).not.toContain(secret)
  expect(headers.get('location')).toBeNull()
  expect(JSON.stringify(gateway.events)).not.toContain(secret)
})

test('a text that is no key is refused, and not repeated', async () => {
  const wrong = `pk_${'x'.repeat(49)}`
  const { status, text } = await gateway.visit(operator, `${LIST}/lookup`, {
    form: { apiKey: wrong },
  })
  expect(status).toBe(422)
  expect(text).not.toContain(wrong)
  expect(text).toMatch(/name="apiKey" type="password"[^>]* aria-invalid="true"/)
  expect(text).toContain('Must be an API key without a mistyped character')
})

test('a secret in place of an id is neither shown nor searched for', async () => {
  const { secret } = await create({ name: 'in a URL', subject: 'reporter' })
  for (const path of [`${LIST}/${secret}`, `/-/console/callers?kind=key&value=${secret}`]) {
    const { text } = await gateway.visit(operator, path)
    expect(text).not.toContain(secret)
  }
  expect(JSON.stringify(gateway.events)).not.toContain(secret)
})

test('a rotation ends the old secret, and a disabled key is valid nowhere', async () => {
  const { id, secret } = await create({ name: 'rotated', subject: 'reporter' })
  const rotated = await act('rotateApiKey', { id, graceSeconds: '0' })
  const next = secretIn(rotated.text)
  expect((await callWith(secret, '/orders')).status).toBe(401)
  expect((await callWith(next, '/orders')).status).toBe(200)
  expect((await act('disableApiKey', { id })).status).toBe(303)
  expect((await callWith(next, '/orders')).status).toBe(401)
  const { text } = await gateway.visit(operator, `${LIST}/${id}`)
  expect(text).toContain('revoked by olga')
})

test('an expiry and a plan of a key change, and the page shows what remains', async () => {
  const { id, secret } = await create({ name: 'metered', subject: 'metered' })
  await callWith(secret, '/metered')
  await callWith(secret, '/metered')
  expect((await gateway.visit(operator, `${LIST}/${id}`)).text).toContain('48 of 50')
  expect((await act('planApiKey', { id, plan: 'pro' })).status).toBe(303)
  expect((await act('expireApiKey', { id, days: '30' })).status).toBe(303)
  const { text } = await gateway.visit(operator, `${LIST}/${id}`)
  expect(text).toContain('4,998 of 5,000')
  expect(text).toMatch(/<dt>Plan<\/dt><dd>pro<\/dd>/)
  expect(text).not.toContain('<dt>Expires</dt><dd>never</dd>')
  expect((await gateway.visit(operator, `${LIST}/${id}`)).text).toContain('4,998 of 5,000')
})

test('a tenant gets a plan, which its keys have', async () => {
  const { id } = await create({ name: 'of acme', subject: 'worker', tenant: 'acme' })
  expect((await act('assignPlan', { by: 'tenant', value: 'acme', plan: 'pro' })).status).toBe(303)
  const { text } = await gateway.visit(operator, LIST)
  expect(text).toContain('acme')
  expect(text).toContain('>Olga Example (olga)</td>')
  expect((await gateway.visit(operator, `${LIST}/${id}`)).text).toContain('5,000 of 5,000')
})

test('an operator of a tenant sees, finds and changes only keys of the tenant', async () => {
  const own = await create({ name: 'key-of-acme', subject: 'a', tenant: 'acme' })
  const other = await create({ name: 'key-of-globex', subject: 'b', tenant: 'globex' })
  const person = { subject: 'tina', roles: ['operator'], tenant: 'acme' }
  const tina = await gateway.cookieOf(person)
  const { text } = await gateway.visit(tina, LIST)
  expect(text).toContain('key-of-acme')
  expect(text).not.toContain('key-of-globex')
  // Nor what the policy has for other tenants.
  const question = { method: 'GET', path: '/orders', subject: 'a' }
  const explained = await gateway.visit(tina, '/-/console/explain', { form: question })
  expect(text).not.toContain('orders:read')
  for (const page of [text, explained.text]) {
    expect(page).toContain('Roles, separated by spaces')
    expect(page).not.toContain('value="viewer"')
  }
  expect((await gateway.visit(tina, `${LIST}/${own.id}`)).status).toBe(200)
  expect((await gateway.visit(tina, `${LIST}/${other.id}`)).status).toBe(404)
  const form = { apiKey: other.secret }
  expect((await gateway.visit(tina, `${LIST}/lookup`, { form })).status).toBe(404)
  expect((await act('rotateApiKey', { id: other.id, graceSeconds: '0' }, tina)).status).toBe(404)
  expect((await callWith(other.secret, '/orders')).status).toBe(200)
})
