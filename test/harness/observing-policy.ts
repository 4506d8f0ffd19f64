/** A policy with rules that only observe and refuse nothing. */
import { definePolicy } from 'portcullis'

export default definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {
    watched: {
      limit: 2,
      windowSeconds: 86_400,
      by: 'subject',
      onUnavailable: 'deny',
      mode: 'observe',
    },
  },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['watched'] },
    { method: 'GET', path: '/reports', permission: { name: 'reports:read', mode: 'observe' } },
  ],
  abuse: { bans: { mode: 'observe' }, authenticationFailures: { mode: 'observe' } },
})
