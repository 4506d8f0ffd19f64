/** The default export of a policy file, without type checks. */
import { expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { definePolicy, type Policy, requirePolicy } from '../../src/policy/policy.ts'

const routes = [{ method: 'GET', path: '/orders', permission: 'orders:read' }] as const
const DEFINITION = { roles: { reader: ['orders:read'] }, limits: {}, routes }

test('the result of definePolicy is accepted', () => {
  expect(() => requirePolicy(definePolicy(DEFINITION))).not.toThrow()
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['an empty object', {}],
  ['a definition', DEFINITION],
  ['a function', () => definePolicy(DEFINITION)],
])('%s is refused as a policy, and the message says what is missing', (_, value) => {
  const require = () => requirePolicy(value as Policy)
  expect(require).toThrow(Misconfigured)
  expect(require).toThrow('must be the default export, and created by definePolicy()')
})
