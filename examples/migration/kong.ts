/** The routes and limits of Kong's plugins `jwt`, `acl` and `rate-limiting`, as a policy. */
import { definePolicy } from 'portcullis'

export default definePolicy({
  roles: { partners: ['orders:read', 'orders:write'] },
  limits: {
    standard: { limit: 60, windowSeconds: 60, by: 'client', onUnavailable: 'allow' },
    anonymous: { limit: 30, windowSeconds: 60, by: 'address', onUnavailable: 'allow' },
  },
  routes: [
    { method: 'GET', path: '/status', anonymous: true, limits: ['anonymous'] },
    { method: 'GET', path: '/orders/*', permission: 'orders:read', limits: ['standard'] },
    { method: 'POST', path: '/orders', permission: 'orders:write', limits: ['standard'] },
  ],
})
