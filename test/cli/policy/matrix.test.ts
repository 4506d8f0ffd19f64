/** The matrix of a policy with browser sessions. */
import { expect, test } from 'vitest'
import { matrixOf } from '../../../cli/policy/matrix.ts'
import { htmlOf } from '../../../cli/policy/matrix-html.ts'
import { markdownMatrix } from '../../../cli/policy/show-matrix.ts'
import examplePolicy from '../../../examples/feature/policy.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { RouteDefinition } from '../../../src/policy/definition.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

const row = { method: 'GET', permission: 'a:b' } as const
const matrixWith = (...routes: readonly RouteDefinition<never>[]) =>
  matrixOf(definePolicy({ roles: { reader: ['a:b'] }, limits: {}, features: [signIn()], routes }))

test('says which routes accept a session, and what the login must be, for tokens too', () => {
  const matrix = matrixWith(
    { ...row, path: '/page', session: 'browser' },
    { ...row, path: '/admin', session: { acr: ['mfa', 'hw'], maxAgeSeconds: 600 } },
    { ...row, path: '/api' },
    { ...row, path: '/pay', authentication: { acr: ['mfa'] } },
  )
  expect(matrix.rows).toMatchObject([
    { route: 'GET /page', session: 'session or token', authentication: null },
    {
      route: 'GET /admin',
      session: 'session or token',
      authentication: 'login of kind mfa or hw, login in the last 10 min',
    },
    { route: 'GET /api', session: null, authentication: null },
    { route: 'GET /pay', session: null, authentication: 'login of kind mfa' },
  ])
  expect(markdownMatrix(matrix)).toContain('| Session | Authentication |\n')
  expect(htmlOf(matrix)).toContain(
    '<th scope="col">Session</th><th scope="col">Authentication</th>',
  )
})

test('has no column for sessions if no route accepts them', () => {
  const matrix = matrixWith({ ...row, path: '/api' })
  expect(markdownMatrix(matrix)).not.toMatch(/Session|Authentication/)
  expect(htmlOf(matrix)).not.toContain('Session')
})

test('shows the route and the call of a feature of a user, and who may use them', () => {
  const text = markdownMatrix(matrixOf(examplePolicy))
  expect(text).toContain(
    '| GET /-/change-freeze | allowed | allowed | allowed | allowed | allowed |',
  )
  expect(text).toContain(
    '| PUT /-/admin/change-freeze | refused | refused | refused | allowed | allowed |',
  )
})
