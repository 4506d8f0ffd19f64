import { definePolicy } from '../../src/policy/policy.ts'

export default definePolicy({
  roles: { reader: ['orders:read'], writer: ['orders:read', 'orders:write'] },
  limits: { few: { limit: 3, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read' },
    { method: 'POST', path: '/orders', permission: 'orders:write', maxBodyBytes: 2_000_000 },
    { method: 'GET', path: '/counted', anonymous: true, limits: ['few'] },
  ],
})
