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

test('S44: bad credentials are limited where the policy says so, with defaults', () => {
  expect(policyWith()).toEqual({ authenticationFailures: undefined, bans: undefined })
  const limitOf = (authenticationFailures: object) =>
    policyWith({ authenticationFailures }).authenticationFailures
  expect(limitOf({})).toEqual({ limit: 20, windowSeconds: 60 })
  expect(limitOf({ limit: 100 })).toEqual({ limit: 100, windowSeconds: 60 })
  expect(limitOf({ limit: 5, windowSeconds: 3_600 })).toEqual({ limit: 5, windowSeconds: 3_600 })
})

test('bans are there for the asking, with defaults', () => {
  const bans = { violations: 5, windowSeconds: 600, seconds: 3_600, maxSeconds: 86_400, never: [] }
  expect(policyWith({ bans: {} }).bans).toEqual(bans)
  const never = ['192.0.2.0/24', '203.0.113.7', '2001:db8::/32', '::1']
  expect(policyWith({ bans: { violations: 50, never } }).bans).toEqual({
    ...bans,
    violations: 50,
    never,
  })
})

test.each([
  { violations: 0 },
  { seconds: 0 },
  { maxSeconds: 31_536_001 },
  { windowSeconds: 86_401 },
  { after: 5 },
  ...[
    '10.1',
    '010.0.0.1',
    '192.0.2.0/33',
    '192.0.2.0/',
    '2001:db8::/129',
    '10.0.0.0/8/8',
    'all',
    '',
  ].map((text) => ({ never: [text] })),
])('a ban that makes no sense is a mistake: %j', (bans) => {
  expect(() => policyWith({ bans })).toThrow('abuse.bans')
})

test.each([
  { limit: 0, windowSeconds: 60 },
  { limit: 1_000_001, windowSeconds: 60 },
  { limit: 1.5, windowSeconds: 60 },
  { limit: 20, windowSeconds: 0 },
  { limit: 20, windowSeconds: 86_401 },
  { limit: 20, windowSeconds: 60, by: 'subject' },
  false,
])('no throttle, or half of one, is a mistake: %j', (authenticationFailures) => {
  expect(() => policyWith({ authenticationFailures })).toThrow(Misconfigured)
  expect(() => policyWith({ authenticationFailures })).toThrow('abuse.authenticationFailures')
})
