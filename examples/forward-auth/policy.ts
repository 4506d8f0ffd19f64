/** A policy for requests that nginx sends to the API itself: see docs/forward-auth.md. */
import { definePolicy } from 'portcullis'
import { forwardAuth } from 'portcullis/forward-auth'

export default definePolicy({
  roles: { reader: ['orders:read'], writer: ['orders:read', 'orders:write'] },
  limits: {
    standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    anonymous: { limit: 60, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
  },
  features: [forwardAuth({ proxy: 'nginx' })],
  routes: [
    { method: 'GET', path: '/public/ping', anonymous: true, limits: ['anonymous'] },
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
    { method: 'POST', path: '/orders', permission: 'orders:write', limits: ['standard'] },
  ],
})
