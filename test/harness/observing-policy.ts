/** A policy with rules that only observe and refuse nothing. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'

export default definePolicy({
  features: [operators(), authorizationServer()],
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
