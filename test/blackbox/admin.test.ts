import { beforeAll, describe, expect, inject, test } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { ISSUER, mint } from '../harness/issuer.ts'
import { postAs } from './oauth-clients.ts'
import { awayFromWindowEnd } from './window-end.ts'

const stack = inject('stack')
const [here, there] = stack.gateways

let operator: string
beforeAll(async () => {
  const grant = { grant_type: 'client_credentials' }
  const response = await postAs(stack.operator, `${here}/oauth/token`, grant)
  operator = ((await response.json()) as { access_token: string }).access_token
})

interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests only compare the body
  readonly body: any
}

async function admin(
  gateway: string,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> {
  const response = await fetch(`${gateway}/-/admin${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${operator}`,
      ...(body && { 'Content-Type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** Calls the API with a credential. */
async function call(gateway: string, token: string): Promise<Response> {
  const response = await fetch(`${gateway}/orders`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  await response.body?.cancel()
  return response
}
const status = async (gateway: string, token: string) => (await call(gateway, token)).status

describe.each([
  ['session', 'sid'],
  ['subject', 'sub'],
  ['client', 'client_id'],
  ['tenant', 'tenant'],
  ['token', 'jti'],
])('a %s revoked at one gateway [S30, S33]', (kind, claim) => {
  test('is refused by the other on the next request, and accepted after the revocation is deleted', async () => {
    const value = crypto.randomUUID()
    const token = await mint(stack.inlineKey, { claims: { [claim]: value } })
    expect([await status(here, token), await status(there, token)]).toEqual([200, 200])
    const created = await admin(here, 'POST', '/revocations', { kind, value, issuer: ISSUER })
    expect(created.status).toBe(201)
    await forget(stack.origin)
    expect([await status(there, token), await status(here, token)]).toEqual([401, 401])
    expect(await recordsOf(stack.origin)).toEqual([])
    const { id } = created.body
    expect((await admin(there, 'DELETE', `/revocations/${id}`)).status).toBe(204)
    // An isolate may cache its refusal of this token for 10 s.
    const patience = { timeout: kind === 'token' ? 20_000 : 0 }
    const seen: number[] = []
    const look = async (gateway: string) => {
      seen.push(await status(gateway, token))
      return seen.at(-1)
    }
    for (const gateway of [here, there]) await expect.poll(() => look(gateway), patience).toBe(200)
    expect(seen.filter((one) => one !== 200 && one !== 401)).toEqual([])
  })
})

test('a subject banned at one gateway is refused by the other until the ban is lifted', async () => {
  const sub = crypto.randomUUID()
  const token = await mint(stack.inlineKey, { claims: { sub } })
  const ban = { kind: 'subject', value: sub, seconds: 300 }
  const { id } = (await admin(here, 'POST', '/bans', ban)).body
  const refused = await call(there, token)
  expect(refused.status).toBe(403)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(290)
  expect((await admin(there, 'DELETE', `/bans/${id}`)).status).toBe(204)
  expect(await status(here, token)).toBe(200)
})

test('an API key is created, rotated and revoked at both gateways at once', async () => {
  const created = await admin(here, 'POST', '/api-keys', {
    name: 'robot',
    subject: crypto.randomUUID(),
    roles: ['reader'],
  })
  expect(created.status).toBe(201)
  const { id, apiKey } = created.body
  expect([await status(here, apiKey), await status(there, apiKey)]).toEqual([200, 200])
  const { apiKey: second } = (await admin(there, 'POST', `/api-keys/${id}/secret`, {})).body
  expect([await status(here, apiKey), await status(there, apiKey)]).toEqual([401, 401])
  expect([await status(here, second), await status(there, second)]).toEqual([200, 200])
  expect((await admin(here, 'DELETE', `/api-keys/${id}`)).status).toBe(204)
  expect([await status(there, second), await status(here, second)]).toEqual([401, 401])
  const { body } = await admin(there, 'GET', '/api-keys?status=revoked&limit=1')
  expect(body.apiKeys).toMatchObject([{ id, status: 'revoked', prefix: second.slice(0, 9) }])
})

test('an override and a reset of a limit take effect at the other gateway', async () => {
  await awayFromWindowEnd()
  const sub = crypto.randomUUID()
  const token = await mint(stack.inlineKey, { claims: { sub } })
  const body = { limit: 'standard', value: sub, issuer: ISSUER }
  const override = await admin(here, 'POST', '/limits/overrides', { ...body, requests: 3 })
  expect(override.status).toBe(201)
  const remaining = async (gateway: string) =>
    /r=(\d+)/.exec((await call(gateway, token)).headers.get('ratelimit') ?? '')?.[1]
  expect(await remaining(there)).toBe('2')
  expect([await status(here, token), await status(here, token)]).toEqual([200, 200])
  expect(await status(here, token)).toBe(429)
  expect((await admin(there, 'POST', '/limits/reset', body)).status).toBe(204)
  expect(await remaining(there)).toBe('2')
  expect((await admin(there, 'DELETE', `/limits/overrides/${override.body.id}`)).status).toBe(204)
  expect(await remaining(there)).toBe('98')
})

test('a change is in the audit trail with its operator and its target [S66]', async () => {
  const value = crypto.randomUUID()
  const since = new Date(Date.now() - 5_000).toISOString()
  const { id } = (await admin(here, 'POST', '/revocations', { kind: 'session', value })).body
  const query = `/audit?route=${encodeURIComponent('/-/admin/revocations')}&since=${since}`
  await expect
    .poll(async () => (await admin(here, 'GET', query)).body.events, { timeout: 30_000 })
    .toContainEqual(
      expect.objectContaining({
        method: 'POST',
        status: 201,
        decision: 'allow',
        change: { action: 'revocation.create', target: id },
        actor: expect.objectContaining({ subject: stack.operator.id, issuer: here }),
      }),
    )
})

test('a minted token is accepted by both gateways, and the list of keys has public members only', async () => {
  const minted = await admin(here, 'POST', '/tokens', { subject: 'alice', roles: ['reader'] })
  expect(minted.status).toBe(201)
  const { token } = minted.body
  expect([await status(here, token), await status(there, token)]).toEqual([200, 200])
  const opaque = await admin(there, 'POST', '/tokens', {
    subject: 'alice',
    roles: ['reader'],
    format: 'opaque',
  })
  expect(await status(here, opaque.body.token)).toBe(200)
  const { keys } = (await admin(there, 'GET', '/keys')).body
  expect(keys.length).toBeGreaterThan(0)
  for (const key of keys)
    expect(['kid', 'alg', 'state', 'notBefore', 'expiresAt']).toEqual(
      expect.arrayContaining(Object.keys(key)),
    )
})

test('the OpenAPI document and its page are served by workerd', async () => {
  const document = await fetch(`${here}/-/openapi.json`)
  expect(document.status).toBe(200)
  expect(((await document.json()) as { openapi: string }).openapi).toBe('3.1.0')
  const page = await fetch(`${here}/-/docs`)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await page.text()).toContain('POST /-/admin/revocations')
})
