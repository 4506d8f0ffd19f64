import { expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { definePolicy } from '../../src/policy.ts'

const policyWith = (abuse?: object) =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [{ method: 'GET', path: '/', anonymous: true }],
    ...(abuse && { abuse }),
  }).abuse

test('S44: bad credentials are limited unasked, and as the policy says', () => {
  const unasked = { authenticationFailures: { limit: 20, windowSeconds: 60 } }
  expect(policyWith()).toEqual(unasked)
  expect(policyWith({})).toEqual(unasked)
  const authenticationFailures = { limit: 100, windowSeconds: 3_600 }
  expect(policyWith({ authenticationFailures })).toEqual({ authenticationFailures })
})

test.each([
  { limit: 0, windowSeconds: 60 },
  { limit: 1_000_001, windowSeconds: 60 },
  { limit: 1.5, windowSeconds: 60 },
  { limit: 20, windowSeconds: 0 },
  { limit: 20, windowSeconds: 86_401 },
  { limit: 20 },
  { limit: 20, windowSeconds: 60, by: 'subject' },
  false,
])('no throttle, or half of one, is a mistake: %j', (authenticationFailures) => {
  expect(() => policyWith({ authenticationFailures })).toThrow(Misconfigured)
  expect(() => policyWith({ authenticationFailures })).toThrow('abuse.authenticationFailures')
})
