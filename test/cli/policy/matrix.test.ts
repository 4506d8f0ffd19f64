/** The matrix of a policy with browser sessions. */
import { expect, test } from 'vitest'
import { matrixOf } from '../../../cli/policy/matrix.ts'
import { htmlOf } from '../../../cli/policy/matrix-html.ts'
import { markdownMatrix } from '../../../cli/policy/show-matrix.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { RouteDefinition } from '../../../src/policy/definition.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

const row = { method: 'GET', permission: 'a:b' } as const
const matrixWith = (...routes: readonly RouteDefinition<never>[]) =>
  matrixOf(definePolicy({ roles: { reader: ['a:b'] }, limits: {}, features: [signIn()], routes }))

test('says which routes accept a session, and what the login must be', () => {
  const matrix = matrixWith(
    { ...row, path: '/page', session: 'browser' },
    { ...row, path: '/admin', session: { acr: ['mfa', 'hw'], maxAgeSeconds: 600 } },
    { ...row, path: '/api' },
  )
  expect(Object.fromEntries(matrix.rows.map(({ route, session }) => [route, session]))).toEqual({
    'GET /page': 'session or token',
    'GET /admin': 'session only, login of kind mfa or hw, login in the last 10 min',
    'GET /api': null,
  })
  expect(markdownMatrix(matrix)).toContain('| Session |\n')
  expect(htmlOf(matrix)).toContain('<th scope="col">Session</th>')
})

test('has no column for sessions if no route accepts them', () => {
  const matrix = matrixWith({ ...row, path: '/api' })
  expect(markdownMatrix(matrix)).not.toContain('Session')
  expect(htmlOf(matrix)).not.toContain('Session')
})
