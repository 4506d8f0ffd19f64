/** Browser sessions as operators: only where the policy says so, with the rules for sessions of routes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { type OperatorsOptions, operators } from '../../../src/features/operators/index.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { CALLS } from './calls.ts'
import { MODEL } from './relation-model.ts'
import { openSession, type Person, SIGN_IN_VARIABLES } from './sessions.ts'

const policyWith = (options: OperatorsOptions) =>
  definePolicy({
    abuse: { exempt: ['192.0.2.1'] },
    features: [operators(options), authorizationServer(), signIn()],
    origins: origins({ shop: { url: 'http://127.0.0.1:9' } }),
    relations: relations({ model: MODEL, issuers: [ISSUER] }),
    roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
    limits: {
      few: { limit: 2, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
      plan: plans({ plans: { free: '100/min', pro: '1000/min' }, default: 'free' }),
    },
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      {
        ...{
          method: 'GET',
          host: 'shop.test',
          origin: 'shop',
          path: '/',
          permission: 'orders:read',
        },
        session: 'browser',
      },
    ],
  })

let gateway: TestGateway
let open: ReturnType<TestGateway['isolate']>
let closed: typeof open
let careful: typeof open
beforeAll(async () => {
  gateway = await startGateway({
    policy: policyWith({ sessions: true }),
    signs: true,
    variables: SIGN_IN_VARIABLES,
  })
  open = gateway.isolate()
  closed = gateway.isolate(policyWith({}))
  careful = gateway.isolate(policyWith({ sessions: { authentication: { maxAgeSeconds: 60 } } }))
})
afterAll(() => gateway.close())

const cookieOf = (person: Person) => openSession(gateway.redis, PUBLIC_URL, person)

async function call(
  cookie: string,
  method: string,
  path: string,
  body?: object,
  { at = open, url = PUBLIC_URL, headers = { Origin: PUBLIC_URL } as Record<string, string> } = {},
) {
  const response = await at.fetch(
    new Request(`${url}/-/admin${path}`, {
      method,
      headers: {
        Cookie: cookie,
        'CF-Connecting-IP': '192.0.2.1',
        ...headers,
        ...(body && { 'Content-Type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }),
  )
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : JSON.parse(text), text }
}

const BAN = { kind: 'subject', value: 'mallory', seconds: 60, reason: 'scraping' }

const ROWS = CALLS.map(([method, path, permission, body]) => ({ method, path, permission, body }))

describe.each(ROWS)('$method $path', ({ method, path, permission, body }) => {
  test('refuses the session of a reader', async () => {
    const reply = await call(await cookieOf({ roles: ['reader'] }), method, path, body)
    expect(reply.status, reply.text).toBe(403)
    expect(reply.body.code).toBe('insufficient_permission')
    expect(gateway.events.at(-1)?.reason).toBe(`permission_missing:portcullis:${permission}`)
  })

  test('refuses every session without the option', async () => {
    const cookie = await cookieOf({ roles: ['operator'] })
    const reply = await call(cookie, method, path, body, { at: closed })
    expect(reply.status, reply.text).toBe(401)
    expect(reply.body.code).toBe('missing_token')
  })

  test('refuses a session from a page of another origin', async () => {
    if (method === 'GET') return
    const cookie = await cookieOf({ roles: ['operator'] })
    for (const headers of [
      {},
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { Origin: PUBLIC_URL, 'Sec-Fetch-Site': 'cross-site' },
      { Origin: PUBLIC_URL, 'Sec-Fetch-Site': 'same-site' },
    ] as Record<string, string>[]) {
      const reply = await call(cookie, method, path, body, { headers })
      expect(reply.status, reply.text).toBe(403)
      expect(reply.body.code).toBe('cross_origin_request')
      expect(gateway.events.at(-1)?.change).toBeUndefined()
    }
  })
})

test('a person with the role bans a subject, and the record and the event have the name', async () => {
  const cookie = await cookieOf({ roles: ['operator'], name: 'Olga Example' })
  const reply = await call(cookie, 'POST', '/bans', BAN)
  expect(reply.status, reply.text).toBe(201)
  expect(reply.body).toMatchObject({ createdBy: 'olga', createdByName: 'Olga Example' })
  expect(gateway.events.at(-1)).toMatchObject({
    actor: { issuer: ISSUER, subject: 'olga' },
    change: { action: 'ban.create', target: reply.body.id },
    fields: { operator: 'Olga Example' },
  })
  const { body } = await call(cookie, 'GET', '/bans')
  expect(body.bans[0]).toMatchObject({ id: reply.body.id, createdByName: 'Olga Example' })
})

test('a person with a tenant sees and changes only this tenant', async () => {
  const ofPlatform = await cookieOf({ roles: ['operator'] })
  const confined = await cookieOf({ subject: 'tina', roles: ['operator'], tenant: 'acme' })
  const other = await call(ofPlatform, 'POST', '/bans', { ...BAN, tenant: 'globex' })
  expect(other.status, other.text).toBe(201)
  const listed = await call(confined, 'GET', '/bans')
  expect(listed.text).not.toContain('globex')
  expect((await call(confined, 'DELETE', `/bans/${other.body.id}`)).status).toBe(404)
  const foreign = await call(confined, 'POST', '/bans', { ...BAN, tenant: 'globex' })
  expect(foreign.status).toBe(403)
  const own = await call(confined, 'POST', '/bans', BAN)
  expect(own.body).toMatchObject({ tenant: 'acme', owner: 'tenant', createdBy: 'tina' })
})

test('a session that was revoked is refused by the next call, in another isolate too', async () => {
  const cookie = await cookieOf({ subject: 'rita', roles: ['operator'] })
  const other = gateway.isolate()
  expect((await call(cookie, 'GET', '/bans', undefined, { at: other })).status).toBe(200)
  await call(await cookieOf({ roles: ['operator'] }), 'POST', '/revocations', {
    kind: 'subject',
    value: 'rita',
  })
  const reply = await call(cookie, 'GET', '/bans', undefined, { at: other })
  expect(reply.status).toBe(401)
  expect(reply.body.code).toBe('sign_in_required')
})

test('a session of another host is refused, at this host and at its own', async () => {
  const cookie = await cookieOf({ roles: ['operator'], host: 'shop.test' })
  for (const url of [PUBLIC_URL, 'https://shop.test']) {
    const reply = await call(cookie, 'POST', '/bans', BAN, { url, headers: { Origin: url } })
    expect(reply.status, reply.text).toBe(404)
    expect(gateway.events.at(-1)).toMatchObject({ reason: 'not_found' })
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  }
})

test('a session and a token together are refused', async () => {
  const cookie = await cookieOf({ roles: ['operator'] })
  const Authorization = `Bearer ${await gateway.token({ claims: { roles: ['operator'] } })}`
  const reply = await call(cookie, 'GET', '/bans', undefined, { headers: { Authorization } })
  expect(reply.status).toBe(400)
})

test('a policy that demands a recent login refuses changes of an older one, and lets it read', async () => {
  const cookie = await cookieOf({ roles: ['operator'], ageSeconds: 600 })
  const recent = await cookieOf({ roles: ['operator'] })
  const refused = await call(cookie, 'POST', '/bans', BAN, { at: careful })
  expect(refused.status, refused.text).toBe(401)
  expect(refused.body.code).toBe('sign_in_required')
  expect((await call(cookie, 'GET', '/bans', undefined, { at: careful })).status).toBe(200)
  expect((await call(recent, 'POST', '/bans', BAN, { at: careful })).status).toBe(201)
})

test('sessions without the sign-in are a mistake of the policy', () => {
  expect(() =>
    definePolicy({
      features: [operators({ sessions: true })],
      roles: { reader: ['orders:read'] },
      limits: {},
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    }),
  ).toThrow(/signIn/)
})
