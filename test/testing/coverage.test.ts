/** What a table of requests reached, and that no row affects another one. */
import { definePolicy } from 'portcullis'
import { PolicyTestError, policyTest } from 'portcullis/testing'
import { describe, expect, test } from 'vitest'

const policy = definePolicy({
  roles: { reader: ['notes:read'], writer: ['notes:*'], admin: ['*'] },
  limits: { standard: { limit: 1, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } },
  abuse: { authenticationFailures: { limit: 1 }, bans: { violations: 1 } },
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] },
    { method: 'POST', path: '/notes', permission: 'notes:write' },
    { method: 'DELETE', path: '/notes/:id', permission: 'notes:delete' },
  ],
})
const reader = { sub: 'alice', roles: ['reader'] }

test('reports the routes and the roles that no row reached', async () => {
  const report = await policyTest(policy, [
    { request: 'HEAD /notes', as: reader, expect: 200 },
    { request: 'GET /notes', expect: 'missing_token' },
    { request: 'POST /notes', as: reader, body: {}, expect: 'insufficient_permission' },
    { request: 'GET /nothing', as: { roles: ['admin'] }, expect: 404 },
  ])
  expect(report).toMatchObject({
    rows: 4,
    routes: [
      { route: 'GET /notes', allowed: 1, refused: 1 },
      { route: 'POST /notes', allowed: 0, refused: 1 },
      { route: 'DELETE /notes/:id', allowed: 0, refused: 0 },
    ],
    untested: { routes: ['DELETE /notes/:id'], roles: ['writer', 'admin'] },
  })
  expect(report.summary).toBe(
    '4 rows; 2 of 3 routes and 1 of 3 roles tested; not tested: DELETE /notes/:id, writer, admin',
  )
})

test('limits, failures and bans of one row do not reach the next one', async () => {
  const rejected = { request: 'GET /notes', token: 'a.b.c', expect: 'invalid_token' } as const
  const allowed = { request: 'GET /notes', as: reader, expect: 'allowed' } as const
  await policyTest(policy, [allowed, allowed, rejected, rejected, allowed, rejected, allowed])
})

test('lists each other decision with the stage that decided, in one error', async () => {
  const testing = policyTest(policy, [
    { request: 'GET /notes', as: reader, expect: 'allowed' },
    { name: 'no writes', request: 'POST /notes', as: reader, body: {}, expect: 'allowed' },
    { request: 'GET /notes', as: reader, expect: 'insufficient_permission' },
    { request: 'GET /notes', expect: 403 },
  ])
  await expect(testing).rejects.toThrow(PolicyTestError)
  const { message, failures, report } = await testing.then(
    () => expect.unreachable(),
    (error: PolicyTestError) => error,
  )
  expect(message).toBe(`The policy decides otherwise:
row 2 (no writes), POST /notes as {"sub":"alice","roles":["reader"]}: expected allowed, got insufficient_permission (403, permission_missing:notes:write)
  authorize: the caller does not have the permission notes:write; it is of writer, admin
row 3, GET /notes as {"sub":"alice","roles":["reader"]}: expected insufficient_permission, got allowed (200)
  authorize: reader has the permission notes:read
row 4, GET /notes: expected 403, got missing_token (401, missing_token)
  authenticate: the route is not open to anonymous callers, and the request has no credential`)
  expect(failures.map(({ index }) => index)).toEqual([1, 2, 3])
  expect(report).toMatchObject({ rows: 4, untested: { roles: ['writer', 'admin'] } })
})

test('names a role of the caller that the policy does not have', async () => {
  const row = { request: 'GET /notes', as: { roles: ['raeder'] }, expect: 'allowed' } as const
  await expect(policyTest(policy, [row])).rejects.toThrow(
    'the policy has no role raeder; did you mean "reader"?',
  )
})

test('a table is tested with its options', async () => {
  const report = await policyTest({
    policy,
    issuers: ['https://idp.example.com'],
    rows: [
      {
        request: 'GET /notes',
        as: { ...reader, issuer: 'https://idp.example.com' },
        expect: 'allowed',
      },
    ],
  })
  expect(report).toMatchObject({ rows: 1 })
})

describe('a mistake in a table is an error that names the row and the field', () => {
  test.each([
    [{ role: 'reader' }, 'row 1: unknown field "role"'],
    [{ hosts: 'a.example' }, 'row 1: unknown field "hosts"; did you mean "host"?'],
    [{ as: { role: ['reader'] } }, 'row 1: as: unknown field "role"; did you mean "roles"?'],
    [{ as: { roles: 'reader' } }, 'row 1: as.roles: Invalid input: expected array'],
    [{ apiKey: {} }, 'row 1: apiKey.sub: Invalid input'],
    [{ expect: undefined }, 'row 1: expect: must be "allowed", a problem code, or a status'],
    [{ as: reader, token: 'x' }, 'row 1: request: has both `as` and `token`; keep one of them'],
    [{ dpop: true }, 'row 1: request: `dpop` needs a credential'],
  ])('%j', async (fields, message) => {
    const row = { request: 'GET /notes', expect: 401, ...fields } as never
    await expect(policyTest(policy, [row])).rejects.toThrow(message)
  })

  test('of the table itself', async () => {
    const table = { policy, rows: [], relation: () => true } as never
    await expect(policyTest(table)).rejects.toThrow(
      'unknown field "relation"; did you mean "relations"?',
    )
  })
})

describe('credentials of a row', () => {
  const bound = definePolicy({
    roles: { reader: ['notes:read'] },
    limits: {},
    tokens: { dpopNonceRequired: true },
    routes: [
      { method: 'GET', path: '/notes', permission: 'notes:read', dpop: true },
      { method: 'GET', path: '/open', permission: 'notes:read' },
    ],
  })

  test('a DPoP proof is for the token, the request and the nonce', async () => {
    await policyTest(bound, [
      { request: 'GET /notes?page=2', as: reader, dpop: true, expect: 'allowed' },
      { request: 'GET /notes', as: reader, expect: 'invalid_dpop_proof' },
      { request: 'GET /open', as: reader, dpop: true, expect: 'allowed' },
      {
        request: 'GET /open',
        as: { ...reader, claims: { cnf: { jkt: 'x'.repeat(43) } } },
        expect: 401,
      },
      {
        request: 'GET /open',
        as: { ...reader, claims: { cnf: { jkt: 'x'.repeat(43) } } },
        dpop: true,
        expect: 'invalid_token',
      },
      {
        request: 'GET /open',
        as: reader,
        dpop: true,
        headers: { dpop: 'a.b.c' },
        expect: 'invalid_dpop_proof',
      },
    ])
  })

  test('an API key has its roles, and counts for them', async () => {
    const { roles } = await policyTest(bound, [
      { request: 'GET /open', apiKey: { sub: 'robot', roles: ['reader'] }, expect: 'allowed' },
      { request: 'GET /open', apiKey: { sub: 'robot' }, expect: 'insufficient_permission' },
    ])
    expect(roles).toEqual([{ role: 'reader', allowed: 1, refused: 0 }])
  })
})
