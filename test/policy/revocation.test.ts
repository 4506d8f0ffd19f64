import { expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { definePolicy } from '../../src/policy/policy.ts'

const policyWith = (revocation?: object) =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [{ method: 'GET', path: '/', anonymous: true }],
    ...(revocation && { revocation }),
  }).revocation

test('by default, a policy has every request check the revocation of its caller', () => {
  expect([policyWith(), policyWith({}), policyWith({ maxStalenessMs: 0 })]).toEqual([
    ...[{ maxStalenessMs: 0 }, { maxStalenessMs: 0 }, { maxStalenessMs: 0 }],
  ])
  expect(policyWith({ maxStalenessMs: 60_000 })).toEqual({ maxStalenessMs: 60_000 })
})

test.each([-1, 0.5, 60_001, '1000', null, Number.NaN])('a bound of %j is refused', (value) => {
  expect(() => policyWith({ maxStalenessMs: value })).toThrow(Misconfigured)
})

test('a bound with another name is refused', () => {
  expect(() => policyWith({ maxStaleness: 5 })).toThrow(/revocation/)
})
