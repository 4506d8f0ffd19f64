/** The smallest useful policy: one route and one limit, without opt-in features. */
import { definePolicy } from 'portcullis'

export default definePolicy({
  roles: { reader: ['notes:read'] },
  limits: {
    standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [{ method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] }],
})
