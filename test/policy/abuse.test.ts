import { expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { definePolicy } from '../../src/policy/policy.ts'

const policyWith = (abuse?: object) =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [{ method: 'GET', path: '/', anonymous: true }],
    ...(abuse && { abuse }),
  }).abuse

const failures = { limit: 20, windowSeconds: 60, mode: 'enforce' }
const bans = {
  violations: 5,
  windowSeconds: 600,
  seconds: 3_600,
  maxSeconds: 86_400,
  mode: 'enforce',
  refuses: 'credentials',
}

test('by default, a policy throttles bad credentials and bans, and exempts loopback [S44]', () => {
  const exempt = ['127.0.0.0/8', '::1/128']
  const defaults = { authenticationFailures: failures, bans, exempt }
  expect(policyWith()).toEqual(defaults)
  expect(policyWith({})).toEqual(defaults)
  expect(policyWith({ authenticationFailures: {}, bans: {} })).toEqual(defaults)
})

test('each abuse setting can be turned off alone', () => {
  expect(policyWith({ authenticationFailures: false })).toMatchObject({
    authenticationFailures: undefined,
    bans,
  })
  expect(policyWith({ bans: false })).toMatchObject({
    authenticationFailures: failures,
    bans: undefined,
  })
})

test('settings of the policy override the defaults, and the other defaults remain', () => {
  expect(policyWith({ authenticationFailures: { limit: 100 } }).authenticationFailures).toEqual({
    ...failures,
    limit: 100,
  })
  expect(policyWith({ bans: { violations: 50, mode: 'observe' } }).bans).toEqual({
    ...bans,
    violations: 50,
    mode: 'observe',
  })
  const exempt = ['192.0.2.0/24', '203.0.113.7', '2001:db8::/32', '::1']
  expect(policyWith({ exempt }).exempt).toEqual(exempt)
  expect(policyWith({ exempt: [] }).exempt).toEqual([])
})

test.each([
  { violations: 0 },
  { seconds: 0 },
  { maxSeconds: 31_536_001 },
  { windowSeconds: 86_401 },
  { mode: 'shadow' },
  { never: [] },
  true,
  null,
])('an invalid ban is refused: %j', (wrong) => {
  expect(() => policyWith({ bans: wrong })).toThrow('abuse.bans')
})

test.each([
  '10.1',
  '010.0.0.1',
  '192.0.2.0/33',
  '192.0.2.0/',
  '2001:db8::/129',
  '10.0.0.0/8/8',
  'all',
  '',
])('an exemption that is neither an address nor a range is refused: %j', (text) => {
  expect(() => policyWith({ exempt: [text] })).toThrow('abuse.exempt')
})

test.each([
  { limit: 0, windowSeconds: 60 },
  { limit: 1_000_001, windowSeconds: 60 },
  { limit: 1.5, windowSeconds: 60 },
  { limit: 20, windowSeconds: 0 },
  { limit: 20, windowSeconds: 86_401 },
  { limit: 20, windowSeconds: 60, by: 'subject' },
  { mode: 'off' },
  0,
])('an invalid or incomplete throttle is refused: %j', (authenticationFailures) => {
  expect(() => policyWith({ authenticationFailures })).toThrow(Misconfigured)
  expect(() => policyWith({ authenticationFailures })).toThrow('abuse.authenticationFailures')
})
