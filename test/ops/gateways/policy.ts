/** Two versions of a policy: the new one has another route, and another method of a known path. */
import { operators } from '../../../src/features/operators/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

const read = { method: 'GET', permission: 'orders:read' } as const

const NEW_ROUTES = [
  { ...read, path: '/reports' },
  { method: 'POST', path: '/orders', permission: 'orders:read' },
] as const

const policyWith = (isNew: boolean) =>
  definePolicy({
    features: [operators(), signIn()],
    roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
    limits: {
      few: { limit: 20, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
      one: { limit: 1, windowSeconds: 3_600, by: 'address', onUnavailable: 'deny' },
    },
    routes: [
      { ...read, path: '/orders' },
      { ...read, path: '/few', limits: ['few'] },
      { method: 'GET', path: '/one', anonymous: true, limits: ['one'] },
      { ...read, path: '/page', session: 'browser' },
      { ...read, path: '/events', recheckSeconds: 1 },
      { ...read, path: '/socket', recheckSeconds: 1 },
      ...(isNew ? NEW_ROUTES : []),
    ],
  })

export const POLICIES = { old: policyWith(false), new: policyWith(true) } as const
