/** Tests of a policy with vitest. They make no call, and need neither Redis nor an environment. */
import { policyTest, policyTester } from 'portcullis/testing'
import { expect, test } from 'vitest'
import notes from './notes.policy-test.ts'
import policy from './policy.ts'

const reader = { sub: 'alice', roles: ['reader'] }

test('the table of decisions', () => policyTest(notes))

test('the origin gets the verified subject, not the one that a client claims', async () => {
  const tester = policyTester(policy)
  const headers = { 'X-Auth-Subject': 'root' }
  expect(await tester.request('GET /notes', { as: reader, headers })).toMatchObject({
    allowed: true,
    origin: { method: 'GET', path: '/notes', headers: { 'x-auth-subject': 'alice' } },
  })
})

test('a caller has 100 requests a minute', async () => {
  const tester = policyTester(policy)
  for (let sent = 0; sent < 100; sent++) await tester.request('GET /notes', { as: reader })
  expect(await tester.request('GET /notes', { as: reader })).toMatchObject({
    allowed: false,
    status: 429,
    reason: 'rate_limited:standard',
  })
  tester.advanceSeconds(60)
  expect(await tester.request('GET /notes', { as: reader })).toMatchObject({ allowed: true })
})

test('a revoked subject is refused on the next request', async () => {
  const tester = policyTester(policy)
  await tester.request('GET /notes', { as: reader })
  await tester.revoke({ sub: 'alice' })
  expect(await tester.request('GET /notes', { as: reader })).toMatchObject({
    status: 401,
    reason: 'token_revoked:subject',
  })
})
