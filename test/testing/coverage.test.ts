/** What a table of requests reached, and that no row affects another one. */
import { definePolicy } from 'portcullis'
import { policyTest } from 'portcullis/testing'
import { expect, test } from 'vitest'

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
