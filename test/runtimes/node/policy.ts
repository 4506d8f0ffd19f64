import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { quotas } from '../../../src/features/plans/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

export default definePolicy({
  roles: { reader: ['orders:read'], writer: ['orders:read', 'orders:write'] },
  limits: {
    few: { limit: 3, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
    some: { limit: 15, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' },
    inFlight: quotas({ concurrency: 3, by: 'subject', slotSeconds: 5 }),
  },
  features: [authorizationServer()],
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read' },
    { method: 'POST', path: '/orders', permission: 'orders:write', maxBodyBytes: 2_000_000 },
    { method: 'GET', path: '/counted', anonymous: true, limits: ['few'] },
    { method: 'GET', path: '/limited', permission: 'orders:read', limits: ['some'] },
    { method: 'GET', path: '/slots', permission: 'orders:read', limits: ['inFlight'] },
  ],
})
