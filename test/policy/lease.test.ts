import { expect, test } from 'vitest'
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { Misconfigured } from '../../src/errors.ts'
import { upstash } from '../../src/features/upstash/index.ts'
import { admit } from '../../src/middleware/admit.ts'
import type { LimitDefinition } from '../../src/policy/definition.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'

const LIMIT: LimitDefinition = {
  limit: 100,
  windowSeconds: 4,
  by: 'address',
  onUnavailable: 'deny',
  lease: { max: 50, ttlMs: 1_000 },
}

const policyWith = (limit: object, revocation = { maxStalenessMs: 1_000 }) =>
  definePolicy({
    roles: {},
    limits: { standard: { ...LIMIT, ...limit } },
    routes: [{ method: 'GET', path: '/', anonymous: true, limits: ['standard'] }],
    revocation,
  })

test('a limit declares how much an isolate may lease in advance', () => {
  expect(policyWith({}).routes[0]?.limits[0]?.lease).toEqual({ max: 50, ttlMs: 1_000 })
  expect(policyWith({ lease: undefined }).limits.get('standard')?.lease).toBeUndefined()
})

test('a lease without a revocation bound is refused, because every request would call Redis anyway', () => {
  expect(() => policyWith({}, { maxStalenessMs: 0 })).toThrow(/limits\.standard\.lease/)
})

test.each<[object, string]>([
  [{ lease: { max: 1, ttlMs: 1_000 } }, 'limits.standard.lease.max: '],
  [{ lease: { max: 50, ttlMs: 49 } }, 'limits.standard.lease.ttlMs: '],
  [
    { lease: { max: 50, ttlMs: 1_001 } },
    'limits.standard.lease: ttlMs must be from 50 to 1000, a quarter of the window',
  ],
  [{ windowSeconds: 1, lease: { max: 50, ttlMs: 251 } }, 'ttlMs must be from 50 to 250'],
  [{ lease: { max: 50 } }, 'limits.standard.lease.ttlMs: '],
  [{ lease: { max: 50, ttlMs: 1_000, more: 1 } }, 'limits.standard.lease: '],
  [
    { cost: 60, lease: { max: 50, ttlMs: 1_000 } },
    'limits.standard.lease: max of 50 must be at least the cost of a request, 60',
  ],
  [{ engine: upstash() }, 'limits.standard.lease: requires exact windows; remove engine'],
])('an invalid lease is refused with the reason: %j', (wrong, why) => {
  expect(() => policyWith(wrong)).toThrow(Misconfigured)
  expect(() => policyWith(wrong)).toThrow(why)
})

test('as middleware, such a limit is refused when the app is built', () => {
  const store = createRedisAdmissionStore({
    keys: DEFAULT_KEYS,
    send: () => Promise.reject(new Error('not called')),
  })
  const admission = createAdmission({ store, now: Date.now })
  const limits = [{ name: 'standard', ...LIMIT, windowSeconds: 2 }]
  expect(() => admit({ admission, limits })).toThrow(RangeError)
})
